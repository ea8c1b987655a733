package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var testConfig = Config{Suspect: 2 * time.Second, Lease: 3 * time.Second, Keep: 4}

const second = Time(time.Second)

func TestLifeOfANode(t *testing.T) {
	table := New(testConfig)
	events, err := table.Join(0, "a", "host:1", false)
	require.NoError(t, err)
	require.Equal(t, []Event{{ID: "a", To: Alive}}, events)
	require.Equal(t, uint64(1), table.Version())

	tick := func(now Time) []Event { return table.Tick(now) }
	require.Empty(t, tick(second))
	require.Equal(t, []Event{{ID: "a", From: Alive, To: Unreachable, Reason: "no heartbeat for 2s"}}, tick(2*second))
	require.Empty(t, tick(2*second))
	events, err = table.Heartbeat(2*second, "a")
	require.NoError(t, err)
	require.Equal(t, []Event{{ID: "a", From: Unreachable, To: Alive}}, events)
	require.Empty(t, tick(3*second))
	require.Len(t, tick(4*second), 1)
	require.Equal(t, []Event{{ID: "a", From: Unreachable, To: Dead, Reason: "no heartbeat for 3s"}}, tick(5*second))

	_, err = table.Heartbeat(5*second, "a")
	require.ErrorIs(t, err, ErrDead)
	_, err = table.Join(5*second, "a", "host:1", false)
	require.ErrorIs(t, err, ErrDead)
	require.Empty(t, table.Leave(5*second, "a", "bye"))
	_, err = table.Heartbeat(5*second, "b")
	require.ErrorIs(t, err, ErrUnknown)
}

func TestJoin(t *testing.T) {
	for _, test := range []struct {
		name, id, address string
		want              []Event
		err               error
	}{
		{"another", "b", "host:2", []Event{{ID: "b", To: Alive}}, nil},
		{"repeated", "a", "host:1", nil, nil},
		{"taken", "a", "host:2", nil, ErrTaken},
		{"restarted", "b", "host:1", []Event{
			{ID: "a", From: Alive, To: Dead, Reason: "replaced by b at the same address"}, {ID: "b", To: Alive},
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := New(testConfig)
			_, err := table.Join(0, "a", "host:1", false)
			require.NoError(t, err)
			events, err := table.Join(1, test.id, test.address, false)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, events)
		})
	}
}

// A head that was stopped itself must not blame the others.
func TestLateTick(t *testing.T) {
	table := New(testConfig)
	_, _ = table.Join(0, "a", "host:1", false)
	require.Empty(t, table.Tick(second/2))
	require.Empty(t, table.Tick(100*second), "the head slept, nobody else")
	require.Empty(t, table.Tick(101*second))
	require.Len(t, table.Tick(102*second), 1, "now the silence is the node's own")
}

func TestPinned(t *testing.T) {
	table := New(testConfig)
	_, _ = table.Join(0, "head", "host:1", true)
	for now := Time(0); now < 100*second; now += second {
		require.Empty(t, table.Tick(now))
	}
	m, _ := table.Get("head")
	require.Equal(t, 99*second, m.LastSeen)
	require.Len(t, table.Leave(100*second, "head", "closing"), 1)
}

// TestProperties feeds random events and compares with a model that keeps only
// what each node did last.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New(testConfig)
		type node struct {
			address string
			last    Time
			state   State
		}
		model := map[string]*node{}
		now, version, made := Time(0), uint64(0), 0

		observe := func(events []Event) {
			for _, e := range events {
				m := model[e.ID]
				require.NotNil(t, m)
				require.Equal(t, m.state, e.From, "events tell a node's whole story")
				require.NotEqual(t, Dead, e.From, "dead is final")
				m.state = e.To
			}
			version += uint64(len(events))
			require.Equal(t, version, table.Version())
		}
		pick := func(t *rapid.T) string { return fmt.Sprintf("n%d", rapid.IntRange(0, 12).Draw(t, "node")) }

		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				id := fmt.Sprintf("n%d", made)
				made++
				address := fmt.Sprintf("host:%d", rapid.IntRange(0, 5).Draw(t, "address"))
				model[id] = &node{address: address, last: now}
				events, err := table.Join(now, id, address, false)
				require.NoError(t, err)
				observe(events)
			},
			"heartbeat": func(t *rapid.T) {
				id := pick(t)
				events, err := table.Heartbeat(now, id)
				observe(events)
				m := model[id]
				switch {
				case err == nil:
					require.NotNil(t, m)
					require.Equal(t, Alive, m.state)
					m.last = now
				case m == nil:
					require.ErrorIs(t, err, ErrUnknown)
				default:
					require.Equal(t, Dead, m.state)
				}
			},
			"leave": func(t *rapid.T) { observe(table.Leave(now, pick(t), "bye")) },
			"tick": func(t *rapid.T) {
				now += Time(rapid.IntRange(0, 4).Draw(t, "quarters")) * second / 4
				observe(table.Tick(now))
				for id, m := range model {
					silence := now - m.last
					switch m.state {
					case Alive:
						require.Less(t, silence, testConfig.Suspect, id)
					case Unreachable:
						require.GreaterOrEqual(t, silence, testConfig.Suspect, id)
						require.Less(t, silence, testConfig.Lease, id)
					}
				}
			},
			"": func(t *rapid.T) {
				addresses := map[string]string{}
				dead := 0
				for _, m := range table.Members() {
					require.Equal(t, model[m.ID].state, m.State)
					if m.State == Dead {
						dead++
						continue
					}
					require.Empty(t, addresses[m.Address], "two nodes at one address")
					addresses[m.Address] = m.ID
				}
				require.LessOrEqual(t, dead, testConfig.Keep)
				for id, m := range model {
					if _, ok := table.Get(id); !ok {
						require.Equal(t, Dead, m.state, "only the dead are forgotten")
					}
				}
			},
		})
	})
}
