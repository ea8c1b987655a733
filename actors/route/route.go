package route

import (
	"cmp"
	"maps"
	"slices"

	"manta/actors/core"
)

// Out is something to be done. One of Call, Fence, Stop and Fail is set.
type Out struct {
	To          core.NodeID // "": the head
	Call        *core.Spec  // make this call
	Incarnation int32       // of the actor that it is for, when it goes straight
	Fence       uint64      // answer with the number
	Stop        core.ID     // cancel this call
	Fail        core.ID     // this call has failed: its node is dead, or with Canceled it was cancelled and has not begun anywhere
	Canceled    bool
	Node        core.NodeID // that is dead
}

// Router is a node's calls that are not answered. It is not safe for concurrent use.
type Router struct {
	out    []Out
	seq    uint64
	actors map[core.ID]*actor // by handle: those of actors with a name, which may have several, go by the head
	calls  map[core.ID]*call
	kids   map[core.ID]*call // the last call that a task made of those in calls; the others are its older ones
	fences map[uint64]*caller
}

type place struct {
	node        core.NodeID // "": not known
	incarnation int32
}

type actor struct {
	id      core.ID
	at      place
	pinned  bool // all by the head from now on
	dropped bool // no handle is left: it goes with its last caller
	callers map[callerKey]*caller
}

type callerKey struct {
	job    core.JobID
	parent core.ID
}

// caller is one caller's calls of one actor.
type caller struct {
	key   callerKey
	actor *actor
	open  int // of its calls, those that are not answered
	head  int // of these, those that the head has
	last  *call
	known uint64 // the actor's node has what went there up to this
	fence uint64 // not 0: this one is asked for, for what went up to upto
	upto  uint64
	asked core.NodeID
	back  []*call // came back, in order
	queue []*call // made since the fence
}

type way uint8

const (
	waits way = iota
	byHead
	straight
)

type call struct {
	spec  *core.Spec
	plain bool
	from  *caller
	way   way
	seq   uint64
	at    place

	canceled bool // where it went straight: it goes nowhere else

	older, newer *call // of the same task
}

// New gives a router that knows nothing.
func New() *Router {
	return &Router{actors: make(map[core.ID]*actor), calls: make(map[core.ID]*call), kids: make(map[core.ID]*call), fences: make(map[uint64]*caller)}
}

// Take gives what is to be done since the last call, in order.
func (r *Router) Take() []Out {
	out := r.out
	r.out = nil
	return out
}

// Idle says whether nothing is kept.
func (r *Router) Idle() bool { return len(r.actors)+len(r.calls)+len(r.kids)+len(r.fences) == 0 }

// Call makes a call. One that has no single answer, a stream's, keeps the actor's calls with the head from then on.
func (r *Router) Call(s *core.Spec, plain bool) {
	a := r.actor(s.Actor)
	key := callerKey{s.Job, s.Parent}
	c := a.callers[key]
	if c == nil {
		c = &caller{key: key, actor: a}
		if a.callers == nil {
			a.callers = make(map[callerKey]*caller)
		}
		a.callers[key] = c
	}
	a.pinned, a.dropped = a.pinned || s.Stream, false
	k := &call{spec: s, plain: plain, from: c}
	r.add(k)
	c.open++
	r.place(k)
}

// add keeps a call, remove forgets it.
func (r *Router) add(k *call) {
	r.calls[k.spec.ID] = k
	if parent := k.spec.Parent; parent != 0 {
		if k.older = r.kids[parent]; k.older != nil {
			k.older.newer = k
		}
		r.kids[parent] = k
	}
}

func (r *Router) remove(k *call) {
	delete(r.calls, k.spec.ID)
	if k.older != nil {
		k.older.newer = k.newer
	}
	switch {
	case k.newer != nil:
		k.newer.older = k.older
	case k.older != nil:
		r.kids[k.spec.Parent] = k.older
	default:
		delete(r.kids, k.spec.Parent)
	}
	k.older, k.newer = nil, nil
}

func (r *Router) actor(id core.ID) *actor {
	a := r.actors[id]
	if a == nil {
		a = &actor{id: id}
		r.actors[id] = a
	}
	return a
}

// place sends a call on its way, or has it wait.
func (r *Router) place(k *call) {
	c, a := k.from, k.from.actor
	loose := c.last != nil && c.last.seq > c.known // it is not known whether the actor's node has it
	switch {
	case c.fence != 0:
		c.queue = append(c.queue, k)
	case k.plain && a.at.node != "" && !a.pinned && c.head == 0 && (!loose || c.last.at == a.at):
		r.seq++
		k.way, k.seq, k.at = straight, r.seq, a.at
		c.last = k
		r.out = append(r.out, Out{To: a.at.node, Call: k.spec, Incarnation: a.at.incarnation})
	case loose:
		r.fenceOff(c)
		c.queue = append(c.queue, k)
	default:
		k.way = byHead
		c.head++
		r.out = append(r.out, Out{Call: k.spec})
		if k.spec.Stream { // nobody hears of its end
			r.end(k)
		}
	}
}

func (r *Router) fenceOff(c *caller) {
	r.seq++
	c.fence, c.upto, c.asked = r.seq, c.last.seq, c.last.at.node
	r.fences[c.fence] = c
	r.out = append(r.out, Out{To: c.asked, Fence: c.fence})
}

// Where tells where an actor lives that this node has a handle of. The node is one of which NodeDead will say when it dies, and has not.
func (r *Router) Where(id core.ID, node core.NodeID, incarnation int32) {
	a := r.actor(id)
	a.at, a.dropped = place{node, incarnation}, false
}

// Answered takes note of an answer: of the head, which has no name here, or of an actor's node. It is false when that was not asked.
func (r *Router) Answered(id core.ID, from core.NodeID) bool {
	k := r.calls[id]
	if k == nil || k.way == waits || k.at.node != from {
		return false
	}
	r.end(k)
	return true
}

// end forgets a call that is over.
func (r *Router) end(k *call) {
	c := k.from
	r.remove(k)
	if k.way == byHead {
		c.head--
	}
	if c.last == k {
		c.last = nil // and with it all before it have begun
	}
	c.open--
	r.sweep(c)
}

// sweep forgets a caller that has nothing open, and then its actor if that has no handle.
func (r *Router) sweep(c *caller) {
	if c.open > 0 || c.fence != 0 {
		return
	}
	delete(c.actor.callers, c.key)
	if c.actor.dropped && len(c.actor.callers) == 0 && r.actors[c.actor.id] == c.actor {
		delete(r.actors, c.actor.id)
	}
}

// Missed takes note that the actor was not where a call went: it has not begun, and goes by the head.
func (r *Router) Missed(id core.ID, from core.NodeID) {
	k := r.calls[id]
	if k == nil || k.way != straight || k.at.node != from {
		return
	}
	c := k.from
	if c.actor.at == k.at {
		c.actor.at = place{}
	}
	last := c.last == k
	if c.fence == 0 && !last { // those after it come back too
		r.fenceOff(c)
	}
	k.way, k.at = waits, place{}
	if last {
		c.last = nil
	}
	if k.canceled {
		r.out = append(r.out, Out{Fail: id, Canceled: true})
		r.end(k)
	} else {
		c.back = append(c.back, k)
	}
	if last && c.fence == 0 {
		r.flush(c)
	}
}

// Fenced takes note that a node has all that went there before the fence.
func (r *Router) Fenced(fence uint64, from core.NodeID) {
	c := r.fences[fence]
	if c == nil || c.asked != from {
		return
	}
	r.lower(c)
}

func (r *Router) lower(c *caller) {
	delete(r.fences, c.fence)
	c.known, c.fence = c.upto, 0
	r.flush(c)
	r.sweep(c)
}

// flush sends on its way what waited.
func (r *Router) flush(c *caller) {
	list := append(c.back, c.queue...)
	c.back, c.queue = nil, nil
	for _, k := range list {
		if r.calls[k.spec.ID] == k { // else it was cancelled meanwhile
			r.place(k)
		}
	}
}

// NodeDead fails the calls that a node had. What was to go there goes by the head.
func (r *Router) NodeDead(node core.NodeID) {
	for _, a := range r.actors {
		if a.at.node == node {
			a.at = place{}
		}
	}
	for _, k := range r.sorted() {
		if k.way == straight && k.at.node == node {
			r.out = append(r.out, Out{Fail: k.spec.ID, Node: node})
			r.end(k)
		}
	}
	for _, fence := range slices.Sorted(maps.Keys(r.fences)) {
		if c := r.fences[fence]; c != nil && c.asked == node {
			r.lower(c)
		}
	}
}

func (r *Router) sorted() []*call {
	return slices.SortedFunc(maps.Values(r.calls), func(a, b *call) int { return cmp.Compare(a.seq, b.seq) })
}

// Cancel ends a call of this node that the head does not know of; false if there is none.
func (r *Router) Cancel(id core.ID) bool {
	k := r.calls[id]
	switch {
	case k == nil || k.way == byHead:
		return false
	case k.way == straight:
		k.canceled = true
		r.out = append(r.out, Out{To: k.at.node, Stop: id})
		return true
	}
	r.out = append(r.out, Out{Fail: id, Canceled: true})
	r.end(k)
	return true
}

// ByHead says whether the head has a call of this node that it has not answered.
func (r *Router) ByHead(id core.ID) bool {
	k := r.calls[id]
	return k != nil && k.way == byHead
}

// Children lists the calls that a task made and the head does not know of, in order.
func (r *Router) Children(parent core.ID) (ids []core.ID) {
	for k := r.kids[parent]; k != nil; k = k.older {
		if k.way != byHead {
			ids = append(ids, k.spec.ID)
		}
	}
	slices.Reverse(ids)
	return ids
}

// Drop takes note that this node has no handle of the actor any more.
func (r *Router) Drop(id core.ID) {
	a := r.actors[id]
	if a == nil {
		return
	}
	if len(a.callers) == 0 {
		delete(r.actors, id)
		return
	}
	a.dropped, a.at = true, place{}
}

// EndJob forgets the calls of a job that has ended.
func (r *Router) EndJob(job core.JobID) {
	for _, k := range r.calls {
		if k.spec.Job == job {
			r.remove(k)
		}
	}
	for fence, c := range r.fences {
		if c.key.job == job {
			delete(r.fences, fence)
		}
	}
	for _, a := range r.actors {
		for key, c := range a.callers {
			if key.job == job {
				c.open, c.fence = 0, 0
				r.sweep(c)
			}
		}
	}
}
