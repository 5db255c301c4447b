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
	// Self names the machine and the process, as others on it see them; nil: those that this one runs in.
	Self func() (host, process string, err error)

	room int64 // bytes of a station's slots; 0 means stationBytes
}

// OutOfReach is why the ranks of a group can't have each other's memory, the same on all of them. It is no fault: nothing has been moved, and the
// control communicator is as it was.
type OutOfReach struct{ Why string }

func (o *OutOfReach) Error() string { return o.Why }

// hello is what ranks tell each other of themselves.
type hello struct {
	Host, Process, GPU string
	Handle             []byte // of the station
	Keeps              string // why it has none
}

const helloLimit = 4 << 10 // bytes

// Connect opens the stations of the ranks of the control communicator. Where they are out of reach it says so on all ranks, by an [OutOfReach]; any
// other error ends the job.
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
	if c.Self == nil {
		c.Self = self
	}
	e := &engine{config: c, device: c.Device, control: c.Control, lanes: c.Lanes, siblings: c.Siblings, quit: make(chan struct{})}
	err := e.open(ctx)
	far := &OutOfReach{}
	if errors.As(err, &far) {
		if left := e.retreat(ctx); left != nil {
			err = left
		} else {
			return nil, fmt.Errorf("opening the memory of other GPUs: %w", far)
		}
	}
	if err != nil {
		err = e.Give(fmt.Errorf("opening the memory of other GPUs: %w", err))
		return nil, errors.Join(err, e.unmap())
	}
	e.siblings.Add(e.stop)
	go e.watch()
	return e, nil
}

// open shares this rank's station and opens those of the others. All ranks learn what each found in the way, so that it ends in the same way on all.
func (e *engine) open(ctx context.Context) error {
	control := e.control.WithDeadline(e.config.Join)
	mine, own, err := e.introduce()
	if err != nil {
		return err
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	e.stations = make([]station, e.Size())
	e.stations[e.Rank()] = own
	texts, err := dtms.Gather(ctx, control, text, helloLimit)
	if err != nil {
		return err
	}
	way, far := "", &OutOfReach{}
	if err := e.mapAll(mine, texts); errors.As(err, &far) {
		way = far.Why
	} else if err != nil {
		return err
	}
	ways, err := dtms.Gather(ctx, control, []byte(way), helloLimit)
	if err != nil {
		return err
	}
	for r, way := range ways {
		if len(way) > 0 {
			return &OutOfReach{fmt.Sprintf("rank %d %s", e.WorldRank(r), way)}
		}
	}
	return nil
}

// introduce makes this rank's station, and what the others are told of it.
func (e *engine) introduce() (mine hello, own station, err error) {
	own = newStation(e.Size(), e.config.room)
	if mine.Host, mine.Process, err = e.config.Self(); err != nil {
		return mine, own, err
	}
	if mine.GPU, err = e.device.ID(); err != nil {
		return mine, own, err
	}
	if err := e.device.Prepare(e.Size()); err != nil {
		return mine, own, err
	}
	own.at, mine.Handle, err = e.device.Share(own.bytes())
	if far := (*OutOfReach)(nil); errors.As(err, &far) {
		mine.Keeps, err = far.Why, nil
	}
	return mine, own, err
}

// mapAll opens the stations of the others. An OutOfReach goes on the rank's number in a sentence.
func (e *engine) mapAll(mine hello, texts [][]byte) error {
	if mine.Keeps != "" {
		return &OutOfReach{"can't give its memory: " + mine.Keeps}
	}
	for r := range e.stations {
		if r == e.Rank() {
			continue
		}
		var theirs hello
		if err := json.Unmarshal(texts[r], &theirs); err != nil {
			return &dtms.RankError{Rank: e.WorldRank(r), Fault: dtms.Garbled, What: "says nothing of its GPU that can be read: " + err.Error()}
		}
		err := mine.reaches(e.device, theirs)
		if err == nil {
			e.stations[r] = newStation(e.Size(), e.config.room)
			e.stations[r].at, err = e.device.Map(theirs.Handle)
		}
		if far := (*OutOfReach)(nil); errors.As(err, &far) {
			return &OutOfReach{fmt.Sprintf("can't open rank %d's: %s", e.WorldRank(r), far.Why)}
		} else if err != nil {
			return fmt.Errorf("rank %d: %w", e.WorldRank(r), err)
		}
	}
	return nil
}

// retreat undoes what open did: no rank gives its station up while others have it open.
func (e *engine) retreat(ctx context.Context) error {
	if err := e.unmap(); err != nil {
		return err
	}
	if err := e.control.WithDeadline(e.config.Join).Barrier(ctx); err != nil {
		return err
	}
	if e.own().at == 0 {
		return nil
	}
	return e.device.Free(e.own().at)
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
		return &OutOfReach{fmt.Sprintf("it is on another machine (%s, not %s)", other.Host, h.Host)}
	case h.Process == other.Process:
		return &OutOfReach{"it is in the same process: only other processes' memory can be opened"}
	case other.Keeps != "":
		return &OutOfReach{other.Keeps}
	}
	return d.Reaches(other.GPU)
}
