package actors

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors/core"
	"manta/actors/internal/wire"
	"manta/objectstore"
)

// copies are the values of other nodes that were fetched lately. They lie in this node's store, so that who wants one next need not
// fetch it again, and go with the value and its node, with their job, or when there are too many.
type copies struct {
	rt *engine

	mu    sync.Mutex
	byKey map[[16]byte]*valueCopy // guarded by mu
	used  list.List               // guarded by mu; of *valueCopy that are there, the latest first
	bytes int64                   // guarded by mu
}

type valueCopy struct {
	key  [16]byte
	job  JobID
	from NodeID
	done chan struct{} // closed when it was fetched, or was not
	// guarded by copies.mu:
	id    objectstore.ID
	size  int64
	place *list.Element // nil: it is not there
}

// copiesShare is the part of the store's memory that copies may take.
const copiesShare = 8

// fetch brings a value's bytes from another node, or from the copy of it. Of several who want it at once one fetches.
func (rt *engine) fetch(ctx context.Context, job JobID, v *core.Value) (data []byte, shared bool, done func(), err error) {
	c := &rt.copies
	if v.Size > c.limit() {
		data, err = rt.pull(ctx, v)
		return data, false, func() {}, err
	}
	for {
		c.mu.Lock()
		o := c.byKey[v.Key]
		if o == nil {
			o = &valueCopy{key: v.Key, job: job, from: NodeID(v.Node), done: make(chan struct{})}
			if c.byKey == nil {
				c.byKey = make(map[[16]byte]*valueCopy)
			}
			c.byKey[v.Key] = o
			c.mu.Unlock()
			data, err = rt.pull(ctx, v)
			c.settle(o, data, err)
			return data, false, func() {}, err
		}
		if o.place != nil {
			c.used.MoveToFront(o.place)
		}
		id, there := o.id, o.place != nil
		c.mu.Unlock()
		if there {
			object, err := rt.n.store.Get(id)
			if err == nil {
				return object.Bytes(), true, object.Release, nil
			}
			c.drop(v.Key)
			continue
		}
		select {
		case <-o.done: // it is there now, or somebody else has to fetch it
		case <-ctx.Done():
			return nil, false, func() {}, context.Cause(ctx)
		}
	}
}

// limit is how many bytes copies may take.
func (c *copies) limit() int64 { return c.rt.n.cfg.storeConfig().MemoryLimit / copiesShare }

// settle keeps what was fetched, if there is room, and lets go on who waits.
func (c *copies) settle(o *valueCopy, data []byte, err error) {
	store := c.rt.n.store
	size := int64(len(data))
	limit := c.limit()
	var id objectstore.ID
	if st := store.Stats(); err == nil && (size > limit || st.MemoryUsed+size > st.MemoryLimit*3/4) {
		err = objectstore.ErrFull // others need the room more
	}
	if err == nil {
		id, err = store.PutLabelled(string(o.job), "copy", data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(o.done)
	if info, _ := c.rt.n.peers.get(o.from); info.State == NodeDead && err == nil {
		_ = store.Release(id, string(o.job)) // nobody would say when it goes
		err = ErrNodeDead
	}
	if err != nil || c.byKey[o.key] != o {
		if err == nil {
			_ = store.Release(id, string(o.job))
		}
		if c.byKey[o.key] == o {
			delete(c.byKey, o.key)
		}
		return
	}
	o.id, o.size = id, size
	o.place = c.used.PushFront(o)
	for c.bytes += size; c.bytes > limit; {
		c.dropLocked(c.used.Back().Value.(*valueCopy))
	}
}

// drop forgets the copy of a value, if there is one.
func (c *copies) drop(key [16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.byKey[key]; o != nil {
		c.dropLocked(o)
	}
}

func (c *copies) dropLocked(o *valueCopy) {
	delete(c.byKey, o.key)
	if o.place != nil {
		c.used.Remove(o.place)
		o.place = nil
		c.bytes -= o.size
		_ = c.rt.n.store.Release(o.id, string(o.job)) // its job may have ended
	}
}

// dropAll forgets the copies of a job, or of a node that is dead.
func (c *copies) dropAll(job JobID, from NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.byKey {
		if o.job == job || o.from == from {
			c.dropLocked(o)
		}
	}
}

// pull fetches a value's bytes from the node that has it.
func (rt *engine) pull(ctx context.Context, v *core.Value) ([]byte, error) {
	conn, err := rt.n.Conn(NodeID(v.Node))
	if err != nil {
		return nil, err
	}
	stream, err := wire.NewPeerClient(conn).Fetch(ctx, &wire.FetchRequest{Object: v.Key[:], Node: string(rt.n.id)})
	if err != nil {
		return nil, fetchError(v.Node, err)
	}
	data := make([]byte, 0, v.Size)
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, fetchError(v.Node, err)
		}
		data = append(data, chunk.Data...)
	}
}

// copied takes note that a node fetches a value of this one.
func (rt *engine) copied(key [16]byte, node NodeID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if k, ok := rt.kept[key]; ok && !slices.Contains(k.copied, node) {
		k.copied = append(k.copied, node)
		rt.kept[key] = k
	}
}

// fetchError is the error of a fetch from a node. The caller's deadline may be over there a little before it is here: then the value
// is not gone.
func fetchError(node core.NodeID, err error) error {
	if status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("actors: value from node %s: %w", node, context.DeadlineExceeded)
	}
	return fmt.Errorf("%w from node %s: %w", errFetch, node, fromStatus(string(node), err))
}
