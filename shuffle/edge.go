package shuffle

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// Edge describes one exchange. The same value reaches all its writers and readers. Immutable once used.
type Edge struct {
	Job  actors.JobID
	ID   uint32 // unique in the job
	Mode Mode
	// Producers is the node of each producer task, Consumers the node of each partition's reader.
	Producers []actors.NodeID
	Consumers []actors.NodeID
}

// maxTasks bounds what a peer can make a node allocate for one edge.
const maxTasks = 1 << 20

// Validate says what is wrong with the edge.
func (e *Edge) Validate() error {
	if _, err := ParseMode(string(e.Mode)); err != nil {
		return fmt.Errorf("%w: %v", ErrEdge, err)
	}
	switch {
	case e.Job == "":
		return fmt.Errorf("%w: no job", ErrEdge)
	case len(e.Producers) == 0 || len(e.Producers) > maxTasks:
		return fmt.Errorf("%w: %d producers", ErrEdge, len(e.Producers))
	case len(e.Consumers) == 0 || len(e.Consumers) > maxTasks:
		return fmt.Errorf("%w: %d partitions", ErrEdge, len(e.Consumers))
	case slices.Contains(e.Producers, "") || slices.Contains(e.Consumers, ""):
		return fmt.Errorf("%w: a task without a node", ErrEdge)
	}
	return nil
}

// MarshalBinary encodes the edge; node ids appear once each.
func (e *Edge) MarshalBinary() ([]byte, error) {
	m := &shufflepb.Edge{Job: string(e.Job), Id: e.ID, Mode: string(e.Mode)}
	index := map[actors.NodeID]uint32{}
	number := func(nodes []actors.NodeID) []uint32 {
		out := make([]uint32, len(nodes))
		for i, n := range nodes {
			at, ok := index[n]
			if !ok {
				at = uint32(len(m.Nodes))
				index[n] = at
				m.Nodes = append(m.Nodes, string(n))
			}
			out[i] = at
		}
		return out
	}
	m.Producers = number(e.Producers)
	m.Consumers = number(e.Consumers)
	return proto.Marshal(m)
}

// UnmarshalBinary decodes what MarshalBinary made, and validates it.
func (e *Edge) UnmarshalBinary(data []byte) error {
	var m shufflepb.Edge
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: %v", ErrEdge, err)
	}
	name := func(numbers []uint32) ([]actors.NodeID, error) {
		out := make([]actors.NodeID, len(numbers))
		for i, n := range numbers {
			if int(n) >= len(m.Nodes) {
				return nil, fmt.Errorf("%w: node %d of %d", ErrEdge, n, len(m.Nodes))
			}
			out[i] = actors.NodeID(m.Nodes[n])
		}
		return out, nil
	}
	producers, err := name(m.Producers)
	if err != nil {
		return err
	}
	consumers, err := name(m.Consumers)
	if err != nil {
		return err
	}
	*e = Edge{Job: actors.JobID(m.Job), ID: m.Id, Mode: Mode(m.Mode), Producers: producers, Consumers: consumers}
	return e.Validate()
}

// String names the edge in errors.
func (e *Edge) String() string { return fmt.Sprintf("edge %d of job %s", e.ID, e.Job) }

func (e *Edge) channel(producer, partition, attempt int) *shufflepb.Channel {
	return &shufflepb.Channel{
		Job: string(e.Job), Edge: e.ID, Partition: uint32(partition),
		Producer: uint32(producer), Attempt: uint32(attempt), Producers: uint32(len(e.Producers)),
	}
}
