package logs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Events writes scalars for TensorBoard: a TFRecord file of Event messages (tensorflow/core/util/event.proto).
type Events struct {
	out   *bufio.Writer
	close func() error
	now   func() time.Time
}

// NewEvents begins a new event file in a folder. resumed is the step that the run goes on from, or 0: points
// after it in the folder's older files are from before an interruption, and TensorBoard drops them.
func NewEvents(dir string, resumed int64) (*Events, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d", now.Unix(), host, os.Getpid(), now.Nanosecond())
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	e, err := newEvents(f, resumed, time.Now)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	e.close = f.Close
	return e, nil
}

// Field numbers of event.proto and summary.proto.
const (
	eventWallTime, eventStep, eventFileVersion, eventSummary, eventSessionLog = 1, 2, 3, 5, 7
	summaryValue                                                              = 1
	valueTag, valueSimple                                                     = 1, 2
	sessionStatus, sessionStart                                               = 1, 1
)

func newEvents(w io.Writer, resumed int64, now func() time.Time) (*Events, error) {
	e := &Events{bufio.NewWriter(w), func() error { return nil }, now}
	version := protowire.AppendTag(nil, eventFileVersion, protowire.BytesType)
	if err := e.event(0, protowire.AppendString(version, "brain.Event:2")); err != nil {
		return nil, err
	}
	if resumed > 0 {
		status := protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus, protowire.VarintType), sessionStart)
		log := protowire.AppendTag(nil, eventSessionLog, protowire.BytesType)
		if err := e.event(resumed+1, protowire.AppendBytes(log, status)); err != nil {
			return nil, err
		}
	}
	return e, e.out.Flush()
}

// event writes one record: time, step, and the field that says what it is.
func (e *Events) event(step int64, what []byte) error {
	seconds := float64(e.now().UnixNano()) / 1e9
	b := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(seconds))
	b = protowire.AppendTag(b, eventStep, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(step))
	_, err := e.out.Write(tfRecord(append(b, what...)))
	return err
}

// tfRecord frames data: its length, the length's checksum, the data, the data's checksum.
func tfRecord(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}

// maskedCRC is CRC-32C, rotated and offset as TFRecord wants it.
func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

type scalar struct {
	tag   string
	value float64
}

func (e *Events) scalars(step int64, list ...scalar) error {
	var summary []byte
	for _, s := range list {
		v := protowire.AppendTag(nil, valueTag, protowire.BytesType)
		v = protowire.AppendString(v, s.tag)
		v = protowire.AppendTag(v, valueSimple, protowire.Fixed32Type)
		v = protowire.AppendFixed32(v, math.Float32bits(float32(s.value)))
		summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
		summary = protowire.AppendBytes(summary, v)
	}
	what := protowire.AppendTag(nil, eventSummary, protowire.BytesType)
	if err := e.event(step, protowire.AppendBytes(what, summary)); err != nil {
		return err
	}
	return e.out.Flush() // a step is long; a crash should not hide the last ones
}

// Step implements Sink.
func (e *Events) Step(r Step) error {
	rate, unit := r.rate()
	list := []scalar{{"loss/train", float64(r.Loss)}, {"grad_norm", float64(r.GradNorm)}, {"lr", float64(r.LR)},
		{"perf/" + unit + "_per_s", rate}, {"perf/memory_bytes", float64(r.MemoryBytes)}}
	if r.MFU != nil {
		list = append(list, scalar{"perf/mfu", float64(*r.MFU)})
	}
	return e.scalars(r.Step, list...)
}

// Eval implements Sink.
func (e *Events) Eval(r Eval) error { return e.scalars(r.Step, scalar{"loss/val", float64(r.Loss)}) }

// Checkpoint implements Sink.
func (e *Events) Checkpoint(Checkpoint) error { return nil }

// Note implements Sink.
func (e *Events) Note(Note) error { return nil }

// Done implements Sink.
func (e *Events) Done(Done) error { return nil }

// Close implements Sink.
func (e *Events) Close() error {
	err := e.out.Flush()
	if closeErr := e.close(); err == nil {
		err = closeErr
	}
	return err
}
