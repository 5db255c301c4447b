package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"blutrain/dtms"
)

// Config of a group of GPUs.
type Config struct {
	Control *dtms.Communicator // of the same ranks; Close closes it
	Device  Device
	Lanes   *Lanes        // the rank's, for all its groups
	Join    time.Duration // for all ranks to open each other's memory; 0 means 5 minutes
	// Siblings are the rank's engines on the same stream, which this one joins; nil: there are no others.
	Siblings *dtms.Siblings

	room int64                                    // bytes of a station's slots; 0 means stationBytes
	self func() (host, process string, err error) // nil means this process
}

// hello is what ranks tell each other of themselves.
type hello struct {
	Host, Process, GPU string
	Handle             []byte // of the station
}

const helloLimit = 4 << 10 // bytes

// Connect opens the stations of the ranks of the control communicator, which must be processes of one machine.
func Connect(ctx context.Context, c Config) (*dtms.Communicator, error) {
	e, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return dtms.New(e), nil
}

func connect(ctx context.Context, c Config) (*engine, error) {
	if c.Join == 0 {
		c.Join = 5 * time.Minute
	}
	if c.Siblings == nil {
		c.Siblings = &dtms.Siblings{}
	}
	if c.room == 0 {
		c.room = stationBytes
	}
	if c.self == nil {
		c.self = self
	}
	e := &engine{config: c, device: c.Device, control: c.Control, lanes: c.Lanes, siblings: c.Siblings, quit: make(chan struct{})}
	if err := e.open(ctx); err != nil {
		err = e.Give(fmt.Errorf("opening the memory of other GPUs: %w", err))
		return nil, errors.Join(err, e.unmap())
	}
	e.siblings.Add(e.stop)
	go e.watch()
	return e, nil
}

// open shares this rank's station and opens those of the others. When it returns well all ranks have.
func (e *engine) open(ctx context.Context) error {
	c := e.config
	own, control := newStation(e.Size(), c.room), c.Control.WithDeadline(c.Join)
	var mine hello
	var err error
	if mine.Host, mine.Process, err = c.self(); err != nil {
		return err
	}
	if mine.GPU, err = e.device.ID(); err != nil {
		return err
	}
	if err := e.device.Prepare(e.Size()); err != nil {
		return err
	}
	if own.at, mine.Handle, err = e.device.Share(own.bytes()); err != nil {
		return err
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	texts, err := dtms.Gather(ctx, control, text, helloLimit)
	if err != nil {
		return err
	}
	e.stations = make([]station, e.Size())
	for r := range e.stations {
		e.stations[r] = own
		if r == e.Rank() {
			continue
		}
		var theirs hello
		if err := json.Unmarshal(texts[r], &theirs); err != nil {
			return &dtms.RankError{Rank: e.WorldRank(r), Fault: dtms.Garbled, What: "says nothing of its GPU that can be read: " + err.Error()}
		}
		e.stations[r].at = 0
		if err := mine.reaches(e.device, theirs); err != nil {
			return fmt.Errorf("rank %d: %w", e.WorldRank(r), err)
		}
		if e.stations[r].at, err = e.device.Map(theirs.Handle); err != nil {
			return fmt.Errorf("rank %d: %w", e.WorldRank(r), err)
		}
	}
	return control.Barrier(ctx)
}

// self names this machine and this process.
func self() (host, process string, err error) {
	if host, err = os.Hostname(); err != nil {
		return "", "", err
	}
	// Copies of a machine have one name: the kernel's number tells them apart, where there is one.
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		host += " " + strings.TrimSpace(string(boot))
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	return host, fmt.Sprintf("%s %d", space, os.Getpid()), err
}

// reaches says why a rank's memory can't be opened, nil if it can.
func (h hello) reaches(d Device, other hello) error {
	switch {
	case h.Host != other.Host:
		return fmt.Errorf("it is on another machine (%s, this one is %s): its memory is out of reach", other.Host, h.Host)
	case h.Process == other.Process:
		return errors.New("it is in the same process: only other processes' memory can be opened")
	}
	return d.Reaches(other.GPU)
}
