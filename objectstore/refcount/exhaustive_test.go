package refcount

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The scope: every event on 3 objects of 2 owners with 1 further holder and one or two pins, from every state
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
		events = append(events, event{"add", o, 0}, event{"pin", o, 0}, event{"unpin", o, 0})
		for h := range scopeHolders {
			events = append(events, event{"hold", o, h}, event{"release", o, h})
		}
	}
	for o := range scopeOwners {
		events = append(events, event{"end", 0, o})
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
			if scopeObjects[i].owner != scopeOwners[e.name] {
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

func applyTable(t *Table[string], e event) string {
	key := scopeObjects[e.obj].key
	var free bool
	var err error
	switch e.kind {
	case "add":
		err = t.Add(key, scopeObjects[e.obj].owner)
	case "hold":
		err = t.Hold(key, scopeHolders[e.name])
	case "release":
		free, err = t.Release(key, scopeHolders[e.name])
	case "pin":
		err = t.Pin(key)
	case "unpin":
		free, err = t.Unpin(key)
	case "end":
		freed := map[string]bool{}
		for _, k := range t.EndOwner(scopeOwners[e.name]) {
			freed[k] = true
		}
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
			table := New[string]()
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
func checkSame(t *testing.T, table *Table[string], s modelState) {
	t.Helper()
	n := 0
	for i, m := range s.objects {
		r, ok := table.records[scopeObjects[i].key]
		if ok != m.exists {
			t.Fatalf("object %d: in the table %v, want %+v", i, ok, m)
		}
		if !ok {
			continue
		}
		n++
		if r.pins != m.pins {
			t.Fatalf("object %d: %d pins, want %d", i, r.pins, m.pins)
		}
		held := 0
		for h := range m.holders {
			if m.holders[h] {
				held++
			}
		}
		if len(r.holders) != held {
			t.Fatalf("object %d: holders %v, want %v", i, r.holders, m.holders)
		}
	}
	if table.Len() != n {
		t.Fatalf("table has %d records, want %d", table.Len(), n)
	}
	listed := 0
	for _, own := range table.owners.byName {
		if own.head == nil {
			t.Fatalf("owner %s is kept without objects", own.name)
		}
		for r := own.head; r != nil; r = r.next {
			listed++
		}
	}
	if listed != n {
		t.Fatalf("owners list %d records, want %d", listed, n)
	}
}

func TestEndedOwnersAreForgottenInOrder(t *testing.T) {
	table := New[int]()
	for i := range endedKept + 10 {
		table.EndOwner(fmt.Sprint(i))
	}
	require.Len(t, table.owners.ended, endedKept)
	require.False(t, table.Ended("9"))
	require.True(t, table.Ended("10"))
	require.NoError(t, table.Add(1, "9"))
	require.ErrorIs(t, table.Add(2, "10"), ErrOwnerEnded)
}
