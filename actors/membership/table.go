package membership

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// State of a member.
type State uint8

const (
	Alive State = iota + 1
	Unreachable
	Dead
)

func (s State) String() string {
	switch s {
	case 0:
		return "new"
	case Alive:
		return "alive"
	case Unreachable:
		return "unreachable"
	case Dead:
		return "dead"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

var (
	// ErrUnknown: no member has this id.
	ErrUnknown = errors.New("membership: unknown node")
	// ErrDead: this incarnation was declared dead and must not act any more.
	ErrDead = errors.New("membership: node was declared dead")
	// ErrTaken: another member has joined under this id.
	ErrTaken = errors.New("membership: node id is taken")
)

// Time is the time since an origin of the caller's choice. It must not go back.
type Time = time.Duration

// Config sets how long a member may be silent.
type Config struct {
	Suspect time.Duration // then it is unreachable
	Lease   time.Duration // then it is dead; more than Suspect
	Keep    int           // so many dead members are remembered; 0 means 64
}

// Member is one incarnation of a node.
type Member struct {
	ID       string
	Address  string
	Pinned   bool // does not need heartbeats
	State    State
	Joined   Time
	LastSeen Time
	Died     Time
	Reason   string // why it is unreachable or dead
}

// Event is one change of a member's state. From is 0 for a join.
type Event struct {
	ID       string
	From, To State
	Reason   string
}

// Table is the state of one cluster's membership.
type Table struct {
	cfg     Config
	version uint64
	members map[string]*Member
	dead    []string // in order of death, for Keep
	tick    Time     // the last Tick
}

// New gives an empty table.
func New(cfg Config) *Table {
	if cfg.Keep == 0 {
		cfg.Keep = 64
	}
	return &Table{cfg: cfg, members: make(map[string]*Member)}
}

// Version rises with every event.
func (t *Table) Version() uint64 { return t.version }

// Get gives a copy of the member.
func (t *Table) Get(id string) (Member, bool) {
	m, ok := t.members[id]
	if !ok {
		return Member{}, false
	}
	return *m, true
}

// Members gives copies of all members, the dead ones too, in order of joining.
func (t *Table) Members() []Member {
	list := make([]Member, 0, len(t.members))
	for _, m := range t.members {
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b Member) int {
		if a.Joined != b.Joined {
			return int(min(max(a.Joined-b.Joined, -1), 1))
		}
		return compare(a.ID, b.ID)
	})
	return list
}

// Join adds a member. Repeating a join whose reply was lost does no harm. A
// member that had this address before is dead: two processes cannot share it.
func (t *Table) Join(now Time, id, address string, pinned bool) ([]Event, error) {
	if m, ok := t.members[id]; ok {
		switch {
		case m.State == Dead:
			return nil, fmt.Errorf("%w: %s: %s", ErrDead, id, m.Reason)
		case m.Address != address:
			return nil, fmt.Errorf("%w: %s is at %s", ErrTaken, id, m.Address)
		}
		return t.seen(now, m), nil
	}
	var events []Event
	for _, old := range t.sorted() {
		if old.Address == address && old.State != Dead {
			events = append(events, t.die(now, old, "replaced by "+id+" at the same address"))
		}
	}
	t.members[id] = &Member{ID: id, Address: address, Pinned: pinned, State: Alive, Joined: now, LastSeen: now}
	t.version++
	return append(events, Event{ID: id, To: Alive}), nil
}

// Heartbeat renews the member's lease.
func (t *Table) Heartbeat(now Time, id string) ([]Event, error) {
	m, ok := t.members[id]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	if m.State == Dead {
		return nil, fmt.Errorf("%w: %s: %s", ErrDead, id, m.Reason)
	}
	return t.seen(now, m), nil
}

// Leave ends a member at once. Leaving twice does no harm.
func (t *Table) Leave(now Time, id, reason string) []Event {
	m, ok := t.members[id]
	if !ok || m.State == Dead {
		return nil
	}
	return []Event{t.die(now, m, reason)}
}

// Tick judges who has been silent for too long. Call it several times per
// Suspect. When a tick itself comes late by more than Suspect, the head was
// stopped or starved and could not have heard anybody: members are not charged
// for that time.
func (t *Table) Tick(now Time) []Event {
	if late := now - t.tick; t.tick > 0 && late > t.cfg.Suspect {
		for _, m := range t.members {
			m.LastSeen = min(now, m.LastSeen+late)
		}
	}
	t.tick = now
	var events []Event
	for _, m := range t.sorted() {
		silence := now - m.LastSeen
		switch {
		case m.Pinned && m.State == Alive:
			m.LastSeen = now
		case m.State == Dead:
		case silence >= t.cfg.Lease:
			events = append(events, t.die(now, m, fmt.Sprintf("no heartbeat for %v", t.cfg.Lease)))
		case silence >= t.cfg.Suspect && m.State == Alive:
			m.Reason = fmt.Sprintf("no heartbeat for %v", t.cfg.Suspect)
			events = append(events, t.change(m, Unreachable))
		}
	}
	return events
}

func (t *Table) seen(now Time, m *Member) []Event {
	m.LastSeen = max(m.LastSeen, now)
	if m.State == Alive {
		return nil
	}
	m.Reason = ""
	return []Event{t.change(m, Alive)}
}

func (t *Table) die(now Time, m *Member, reason string) Event {
	m.Reason, m.Died = reason, now
	e := t.change(m, Dead)
	t.dead = append(t.dead, m.ID)
	if len(t.dead) > t.cfg.Keep {
		delete(t.members, t.dead[0])
		t.dead = t.dead[1:]
	}
	return e
}

func (t *Table) change(m *Member, to State) Event {
	e := Event{ID: m.ID, From: m.State, To: to, Reason: m.Reason}
	m.State = to
	t.version++
	return e
}

// sorted gives the members by id, so that events have one order.
func (t *Table) sorted() []*Member {
	list := make([]*Member, 0, len(t.members))
	for _, id := range slices.Sorted(maps.Keys(t.members)) {
		list = append(list, t.members[id])
	}
	return list
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
