package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"manta/actors/internal/wire"
	"manta/objectstore"
)

// NodeMemory is what the object store of a node has.
type NodeMemory struct {
	Node    NodeID                   `json:"node"`
	Error   string                   `json:"error,omitempty"` // why nothing is known of it
	Store   objectstore.Stats        `json:"store"`
	Objects []objectstore.ObjectInfo `json:"objects,omitempty"` // the largest, as many as were asked for
}

// ListMemory asks the head what the object stores of all living nodes have, and for the largest objects of each.
func ListMemory(ctx context.Context, conn *grpc.ClientConn, largest int) ([]NodeMemory, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := wire.NewHeadClient(conn).Memory(ctx, &wire.MemoryRequest{Largest: int32(largest)})
	var list []NodeMemory
	for err == nil {
		var r *wire.MemoryReply
		if r, err = stream.Recv(); err != nil {
			break
		}
		if len(list) == 0 || list[len(list)-1].Node != NodeID(r.Node) {
			list = append(list, NodeMemory{Node: NodeID(r.Node)})
		}
		if err := list[len(list)-1].add(r); err != nil {
			return nil, err
		}
	}
	if errors.Is(err, io.EOF) {
		return list, nil
	}
	return nil, fromStatus(conn.Target(), err)
}

func (m *NodeMemory) add(r *wire.MemoryReply) error {
	m.Error = r.Error
	if len(r.Stats) > 0 {
		if err := json.Unmarshal(r.Stats, &m.Store); err != nil {
			return fmt.Errorf("actors: memory of node %s: %w", m.Node, err)
		}
	}
	if len(r.Objects) > 0 {
		var objects []objectstore.ObjectInfo
		if err := json.Unmarshal(r.Objects, &objects); err != nil {
			return fmt.Errorf("actors: objects of node %s: %w", m.Node, err)
		}
		m.Objects = append(m.Objects, objects...)
	}
	return nil
}

// memoryChunk is how many objects go into one message.
const memoryChunk = 1000

// sendMemory tells what this node's store has.
func (n *Node) sendMemory(largest int, send func(*wire.MemoryReply) error) error {
	stats, err := json.Marshal(n.store.Stats())
	if err != nil {
		return err
	}
	if err := send(&wire.MemoryReply{Node: string(n.id), Stats: stats}); err != nil || largest <= 0 {
		return err
	}
	for list := n.store.Largest(largest); len(list) > 0; {
		part := list[:min(len(list), memoryChunk)]
		list = list[len(part):]
		objects, err := json.Marshal(part)
		if err != nil {
			return err
		}
		if err := send(&wire.MemoryReply{Node: string(n.id), Objects: objects}); err != nil {
			return err
		}
	}
	return nil
}

func (s *peerServer) Memory(r *wire.MemoryRequest, stream grpc.ServerStreamingServer[wire.MemoryReply]) error {
	return s.n.sendMemory(int(r.GetLargest()), stream.Send)
}

// memoryTimeout is how long a node may take to say what it has.
const memoryTimeout = 10 * time.Second

// Memory asks all living nodes, one after the other. One that does not answer does not keep the others from being told of.
func (s *headServer) Memory(r *wire.MemoryRequest, stream grpc.ServerStreamingServer[wire.MemoryReply]) error {
	h, err := s.head()
	if err != nil {
		return err
	}
	for _, node := range h.nodes() {
		switch {
		case node.State == NodeDead:
			continue
		case node.ID == s.n.id:
			err = s.n.sendMemory(int(r.GetLargest()), stream.Send)
		default:
			err = s.forwardMemory(node.ID, r, stream)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *headServer) forwardMemory(node NodeID, r *wire.MemoryRequest, out grpc.ServerStreamingServer[wire.MemoryReply]) error {
	ctx, cancel := context.WithTimeout(out.Context(), memoryTimeout)
	defer cancel()
	conn, err := s.n.Conn(node)
	var in grpc.ServerStreamingClient[wire.MemoryReply]
	if err == nil {
		in, err = wire.NewPeerClient(conn).Memory(ctx, r)
	}
	for err == nil {
		var reply *wire.MemoryReply
		if reply, err = in.Recv(); err == nil {
			if err := out.Send(reply); err != nil {
				return err // the client is gone
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return out.Send(&wire.MemoryReply{Node: string(node), Error: fromStatus(string(node), err).Error()})
}
