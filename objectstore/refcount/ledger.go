package refcount

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

var (
	// ErrStale says that a message is of a process, or of a life of it, that has ended.
	ErrStale = errors.New("refcount: process has ended")
	// ErrGap says that a message came before one that must be applied first; it is to be sent again.
	ErrGap = errors.New("refcount: an earlier message is missing")
	// ErrNoTransfer says that a reference was on its way for too long, or was accepted before.
	ErrNoTransfer = errors.New("refcount: no such transfer")
)

// Ledger keeps the holds of other processes on the objects of a Table, told by messages that may be lost,
// repeated and late. A process numbers its messages and sends each until it is acknowledged; the ledger applies
// them in order, once. References pass from process to process by way of the ledger:
//
//	p tells Pass; once that is acknowledged it sends the reference to q; q tells Accept, and holds it when that
//	is acknowledged.
//
// In between the transfer itself holds the object. It ends by acceptance, with the process that it is for, or by
// its lease: Expire, at any time that the caller chooses.
//
// A value in which there are references holds what they name for as long as it exists. References are put into a
// value when it is made, so there are no cycles.
//
// Like the Table it is pure and for one goroutine.
type Ledger[K comparable] struct {
	table     *Table[K, K]
	processes map[string]*process[K]
	transfers map[Transfer]transfer[K]
	nested    map[K][]K // by the outer value
}

// process is the life of a process that is known.
type process[K comparable] struct {
	life  uint64
	seq   uint64 // of the last message that was applied
	holds map[K]struct{}
}

// Transfer names a reference on its way: who passed it, and a number of that process's.
type Transfer struct {
	From   string
	Life   uint64
	Number uint64
}

type transfer[K comparable] struct {
	object K
	to     string
}

// Op says what a message tells.
type Op uint8

const (
	Release Op = iota // Object is not needed any more
	Pass              // Object is to go to process To, as Transfer
	Accept            // Transfer has come
	Nest              // Object is a value in which there is a reference to Inner
)

// Message is what a process tells. Life grows with each start of the process; Seq counts from 1 in each life.
type Message[K comparable] struct {
	Process       string
	Life, Seq     uint64
	Op            Op
	Object, Inner K
	To            string
	Transfer      Transfer
}

// NewLedger returns an empty ledger.
func NewLedger[K comparable](hash func(K) uint64) *Ledger[K] {
	return &Ledger[K]{
		table:     New[K, K](hash, Memory{}),
		processes: map[string]*process[K]{},
		transfers: map[Transfer]transfer[K]{},
		nested:    map[K][]K{},
	}
}

// Exists says whether an object is not freed.
func (l *Ledger[K]) Exists(key K) bool { return l.table.Find(key) != 0 }

// Len returns the number of objects that are not freed.
func (l *Ledger[K]) Len() int { return l.table.Len() }

// Join makes a life of a process known. An earlier life ends with it; joining again does nothing.
func (l *Ledger[K]) Join(name string, life uint64) (free []K, err error) {
	if p := l.processes[name]; p != nil {
		if p.life == life {
			return nil, nil
		}
		if p.life > life {
			return nil, fmt.Errorf("%w: %s, life %d", ErrStale, name, life)
		}
		free = l.End(name, p.life)
	}
	l.processes[name] = &process[K]{life: life, holds: map[K]struct{}{}}
	return free, nil
}

// Add makes an object that a process has put and holds.
func (l *Ledger[K]) Add(key K, owner, name string, life uint64) error {
	p, err := l.process(name, life)
	if err != nil {
		return err
	}
	if _, err := l.table.Add(key, owner, key); err != nil {
		return err
	}
	l.hold(p, name, key)
	_, _, err = l.table.Release(key, owner) // it is the process that holds it
	return err
}

func (l *Ledger[K]) process(name string, life uint64) (*process[K], error) {
	p := l.processes[name]
	if p == nil || p.life != life {
		return nil, fmt.Errorf("%w: %s, life %d", ErrStale, name, life)
	}
	return p, nil
}

func (l *Ledger[K]) hold(p *process[K], name string, key K) {
	if l.table.Hold(key, holderName(name, p.life)) == nil {
		p.holds[key] = struct{}{}
	}
}

func holderName(name string, life uint64) string { return fmt.Sprintf("process %s/%d", name, life) }
func (t Transfer) String() string                { return fmt.Sprintf("transfer %s/%d/%d", t.From, t.Life, t.Number) }
func nestName[K comparable](outer K) string      { return fmt.Sprintf("object %v", outer) }

// Apply takes a message and returns the objects that are freed by it. With no error, and with any but ErrGap, the
// message is to be acknowledged and not sent again; one that was applied before does nothing.
func (l *Ledger[K]) Apply(m Message[K]) (free []K, err error) {
	p, err := l.process(m.Process, m.Life)
	switch {
	case err != nil:
		return nil, err
	case m.Seq <= p.seq:
		return nil, nil
	case m.Seq > p.seq+1:
		return nil, fmt.Errorf("%w: %d after %d of %s", ErrGap, m.Seq, p.seq, m.Process)
	}
	p.seq = m.Seq
	_, holds := p.holds[m.Object]
	if m.Op != Accept && !holds {
		return nil, ErrNotHeld
	}
	switch m.Op {
	case Release:
		delete(p.holds, m.Object)
		free = l.release(m.Object, holderName(m.Process, p.life))
	case Pass:
		// A receiver that is not alive now never accepts: its next life did not ask for this.
		if l.processes[m.To] == nil {
			return nil, fmt.Errorf("%w: %s", ErrStale, m.To)
		}
		l.transfers[m.Transfer] = transfer[K]{m.Object, m.To}
		err = l.table.Hold(m.Object, m.Transfer.String())
	case Accept:
		t, ok := l.transfers[m.Transfer]
		if !ok || t.to != m.Process {
			return nil, fmt.Errorf("%w: %v", ErrNoTransfer, m.Transfer)
		}
		l.hold(p, m.Process, t.object)
		free = l.Expire(m.Transfer)
	case Nest:
		if _, holds := p.holds[m.Inner]; !holds {
			return nil, ErrNotHeld
		}
		if !slices.Contains(l.nested[m.Object], m.Inner) {
			l.nested[m.Object] = append(l.nested[m.Object], m.Inner)
			err = l.table.Hold(m.Inner, nestName(m.Object))
		}
	}
	return free, err
}

// Expire ends a transfer if it is still on its way.
func (l *Ledger[K]) Expire(t Transfer) (free []K) {
	is, ok := l.transfers[t]
	if !ok {
		return nil
	}
	delete(l.transfers, t)
	return l.release(is.object, t.String())
}

// Transfers returns what is on its way, in no order.
func (l *Ledger[K]) Transfers() []Transfer { return slices.Collect(maps.Keys(l.transfers)) }

// End ends a life of a process: its holds, and the transfers to it. Those from it go on: who they are for may
// have got the reference, and accept.
func (l *Ledger[K]) End(name string, life uint64) (free []K) {
	p, err := l.process(name, life)
	if err != nil {
		return nil
	}
	delete(l.processes, name)
	for key := range p.holds {
		free = append(free, l.release(key, holderName(name, life))...)
	}
	for id, t := range l.transfers {
		if t.to == name {
			free = append(free, l.Expire(id)...)
		}
	}
	return free
}

// release takes a holder away, and with a freed object its holds on what is nested in it.
func (l *Ledger[K]) release(key K, holder string) (free []K) {
	if _, freed, err := l.table.Release(key, holder); err != nil || !freed {
		return nil
	}
	free = []K{key}
	inner := l.nested[key]
	delete(l.nested, key)
	for _, k := range inner {
		free = append(free, l.release(k, nestName(key))...)
	}
	return free
}
