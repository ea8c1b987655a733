package refcount

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The scope: every event on 3 objects of 2 owners, one of which may be moved, with 1 further holder and one or two pins, from every state
// that can be reached. The number of states is finite, so the search runs to its fixpoint and not to a depth.

// maxPins is per object: that two pins differ from one is seen on any of them.
var maxPins = [3]int{2, 1, 1}

var (
	scopeOwners  = []string{"A", "B"}
	scopeHolders = []string{"A", "B", "x"}
	scopeObjects = []struct{ key, owner string }{{"1", "A"}, {"2", "A"}, {"3", "B"}}
)

// modelObject is what an object should be, written as plainly as possible.
type modelObject struct {
	exists  bool // until it is freed
	moved   bool // to the owner who is not the one it was made for
	holders [3]bool
	pins    int
}

func (m modelObject) held() bool { return m.holders != [3]bool{} }

type modelState struct {
	objects [3]modelObject
	ended   [2]bool
}

type event struct {
	kind string
	obj  int
	name int
}

func allEvents() (events []event) {
	for o := range scopeObjects {
		events = append(events, event{"add", o, 0}, event{"pin", o, 0}, event{"unpin", o, 0}, event{"drop", o, 0})
		for h := range scopeHolders {
			events = append(events, event{"hold", o, h}, event{"release", o, h})
		}
	}
	for o := range scopeOwners {
		events = append(events, event{"end", 0, o}, event{"move", 0, o})
	}
	return events
}

// applyModel returns the next state and the outcome that the table must give.
func applyModel(s modelState, e event) (modelState, string) {
	m := &s.objects[e.obj]
	free := func(m *modelObject) bool {
		if m.exists && !m.held() && m.pins == 0 {
			*m = modelObject{}
			return true
		}
		return false
	}
	missing := !m.exists || !m.held()
	switch e.kind {
	case "add":
		owner := strings.Index("AB", scopeObjects[e.obj].owner)
		switch {
		case s.ended[owner]:
			return s, "owner ended"
		case m.exists:
			return s, "exists"
		}
		*m = modelObject{exists: true}
		m.holders[owner] = true
		return s, "ok"
	case "move":
		switch {
		case s.ended[e.name]:
			return s, "owner ended"
		case missing:
			return s, "not found"
		}
		m.holders = [3]bool{}
		m.holders[e.name] = true
		m.moved = scopeObjects[e.obj].owner != scopeOwners[e.name]
		return s, "ok"
	case "hold":
		if missing {
			return s, "not found"
		}
		m.holders[e.name] = true
		return s, "ok"
	case "release":
		if missing {
			return s, "not found"
		}
		if !m.holders[e.name] {
			return s, "not held"
		}
		m.holders[e.name] = false
	case "drop":
		if missing {
			return s, "not found"
		}
		m.holders = [3]bool{}
	case "pin":
		if missing {
			return s, "not found"
		}
		m.pins++
		return s, "ok"
	case "unpin":
		if !m.exists {
			return s, "not found"
		}
		if m.pins == 0 {
			return s, "not pinned"
		}
		m.pins--
	case "end":
		s.ended[e.name] = true
		out := "ok"
		for i := range s.objects {
			if (scopeObjects[i].owner == scopeOwners[e.name]) == s.objects[i].moved {
				continue
			}
			s.objects[i].holders = [3]bool{}
			if free(&s.objects[i]) {
				out += " free " + scopeObjects[i].key
			}
		}
		return s, out
	}
	if free(m) {
		return s, "ok free " + scopeObjects[e.obj].key
	}
	return s, "ok"
}

type testTable = Table[string, string]

var seed = maphash.MakeSeed()

// newTable has a hash that makes keys collide, as they do in a full index.
func newTable() *testTable {
	t := New[string, string](func(k string) uint64 { return maphash.String(seed, k) & 1 }, Memory{})
	t.records.shift = 1
	return t
}

func applyTable(t *testTable, e event) string {
	key := scopeObjects[e.obj].key
	var free bool
	var err error
	switch e.kind {
	case "add":
		_, err = t.Add(key, scopeObjects[e.obj].owner, key)
	case "move":
		_, err = t.Move(key, scopeOwners[e.name])
	case "hold":
		err = t.Hold(key, scopeHolders[e.name])
	case "release":
		_, free, err = t.Release(key, scopeHolders[e.name])
	case "drop":
		_, free, err = t.Drop(key)
	case "pin":
		_, err = t.Pin(key)
	case "unpin":
		_, free, err = t.Unpin(t.Find(key))
	case "end":
		freed := map[string]bool{}
		t.EndOwner(scopeOwners[e.name], func(k string) { freed[k] = true })
		out := "ok"
		for _, o := range scopeObjects { // in a fixed order; the table promises none
			if freed[o.key] {
				out += " free " + o.key
			}
		}
		return out
	}
	for want, text := range map[error]string{ErrNotFound: "not found", ErrExists: "exists", ErrNotHeld: "not held",
		ErrNotPinned: "not pinned", ErrOwnerEnded: "owner ended"} {
		if errors.Is(err, want) {
			return text
		}
	}
	if err != nil {
		return err.Error()
	}
	if free {
		return "ok free " + key
	}
	return "ok"
}

func TestExhaustive(t *testing.T) {
	type visit struct {
		state modelState
		path  []event
	}
	events := allEvents()
	seen := map[modelState]bool{{}: true}
	queue := []visit{{}}
	transitions := 0
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, e := range events {
			if e.kind == "pin" && v.state.objects[e.obj].pins == maxPins[e.obj] {
				continue
			}
			next, want := applyModel(v.state, e)
			if next == v.state && len(v.path) > 0 && want != "ok" && v.path[len(v.path)-1] == e {
				continue // the same refusal twice in a row
			}
			table := newTable()
			for _, p := range v.path {
				applyTable(table, p)
			}
			got := applyTable(table, e)
			transitions++
			if got != want {
				t.Fatalf("after %v, %v: got %q, want %q", v.path, e, got, want)
			}
			checkSame(t, table, next)
			if !seen[next] {
				seen[next] = true
				queue = append(queue, visit{next, append(v.path[:len(v.path):len(v.path)], e)})
			}
		}
	}
	t.Logf("%d states, %d transitions", len(seen), transitions)
	require.Greater(t, len(seen), 5_000)
}

// checkSame compares the whole table with the model: kept while held or pinned, gone when neither.
func checkSame(t *testing.T, table *testTable, s modelState) {
	t.Helper()
	n := 0
	for i, m := range s.objects {
		slot := table.Find(scopeObjects[i].key)
		ok := slot != 0
		if ok != m.exists {
			t.Fatalf("object %d: in the table %v, want %+v", i, ok, m)
		}
		if !ok {
			continue
		}
		n++
		if table.Pins(slot) != m.pins {
			t.Fatalf("object %d: %d pins, want %d", i, table.Pins(slot), m.pins)
		}
		held := 0
		for h := range m.holders {
			if m.holders[h] {
				held++
			}
		}
		if len(table.Holders(slot)) != held || table.Live(slot) != m.held() {
			t.Fatalf("object %d: holders %v, want %v", i, table.Holders(slot), m.holders)
		}
	}
	if table.Len() != n {
		t.Fatalf("table has %d records, want %d", table.Len(), n)
	}
	listed := 0
	for name, number := range table.owners.byName {
		own := table.owners.list[number]
		if own.name != name || own.head == 0 {
			t.Fatalf("owner %s is kept without objects", name)
		}
		for r := own.head; r != 0; r = table.records.at(r).next {
			listed++
		}
	}
	if listed != n {
		t.Fatalf("owners list %d records, want %d", listed, n)
	}
}

func TestEndedOwnersAreForgottenInOrder(t *testing.T) {
	table := New[int, int](func(k int) uint64 { return uint64(k) }, Memory{})
	for i := range endedKept + 10 {
		table.EndOwner(fmt.Sprint(i), func(int) {})
	}
	require.Len(t, table.owners.ended, endedKept)
	require.False(t, table.Ended("9"))
	require.True(t, table.Ended("10"))
	_, err := table.Add(1, "9", 0)
	require.NoError(t, err)
	_, err = table.Add(2, "10", 0)
	require.ErrorIs(t, err, ErrOwnerEnded)
}
