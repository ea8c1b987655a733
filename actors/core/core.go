package core

import "fmt"

// Kinds of failures, by the names under which package actors registers its errors.
const (
	FailCanceled      = "canceled"
	FailNodeDead      = "actors.node_dead"
	FailJobEnded      = "actors.job_ended"
	FailActorDead     = "actors.actor_dead"
	FailNotFound      = "actors.not_found"
	FailNameTaken     = "actors.actor_exists"
	FailPending       = "actors.pending_calls"
	FailObjectLost    = "actors.object_lost"
	FailUnschedulable = "actors.unschedulable"
)

// DetachedJob is the job of actors that outlive theirs. It never ends.
const DetachedJob JobID = "detached"

// Config bounds what the core keeps. Zero values take the defaults.
type Config struct {
	MaxLineage      int   // ended tasks that are kept to make lost values again; default 100,000
	MaxLineageBytes int64 // of memory that these take; default 256 MiB
	MaxGang         int   // tasks of gangs on one node, each of which may hold a thread; default 4,000
}

// Core is the state machine. It is not safe for concurrent use.
type Core struct {
	cfg     Config
	out     []Out
	numbers uint64
	nodes   map[NodeID]*node
	order   []*node // alive, by joining
	objects map[ID]*object
	tasks   map[ID]*task        // open ones, and ended ones that are kept as lineage
	kids    map[ID]*chain[task] // open tasks by the task that submitted them
	jobs    map[JobID]*job
	queue   []*job // those with queued tasks come first to be looked at; order of admission
	stats   map[string]*funcStat
	actors  map[ID]*actor // by handle; several handles may be one actor
	names   map[string]*actor
	streams map[ID]*stream
	groups  map[ID]*group
	told    map[NodeID]struct{} // were told where an actor lives: they may have calls that are not known here
	gangs   map[ID]*gang        // of which tasks are still to be submitted
	line    []*gang             // ready, in order
	lineage lineage
	round   uint64 // of schedule
	turn    int    // of spreading
}

// Out is a message to a node.
type Out struct {
	To  NodeID
	Msg any
}

type job struct {
	id      JobID
	closed  bool
	classes []*class // with queued tasks
	byKey   map[classKey]*class
	used    int64 // milli CPUs of its tasks in flight
	tasks   int   // submitted
	done    int
	open    chain[task]
	objects chain[object]
	gangs   map[NodeID]struct{} // where tasks of its gangs are, or were
}

// New gives a core without nodes and jobs.
func New(cfg Config) *Core {
	if cfg.MaxLineage == 0 {
		cfg.MaxLineage = 100_000
	}
	if cfg.MaxLineageBytes == 0 {
		cfg.MaxLineageBytes = 256 << 20
	}
	if cfg.MaxGang == 0 {
		cfg.MaxGang = 4_000
	}
	c := &Core{
		cfg: cfg, nodes: make(map[NodeID]*node), objects: make(map[ID]*object), tasks: make(map[ID]*task),
		kids: make(map[ID]*chain[task]), jobs: make(map[JobID]*job), stats: make(map[string]*funcStat),
		actors: make(map[ID]*actor), names: make(map[string]*actor), streams: make(map[ID]*stream), groups: make(map[ID]*group),
		gangs: make(map[ID]*gang), told: make(map[NodeID]struct{}),
	}
	c.StartJob(DetachedJob)
	return c
}

// Take gives the messages that came out since the last call, in order. The slice is the caller's.
func (c *Core) Take() []Out {
	out := c.out
	c.out = nil
	return out
}

func (c *Core) send(to *node, msg any) {
	if to != nil && !to.dead {
		c.out = append(c.out, Out{to.id, msg})
	}
}

// Handle takes a message from a node. Messages of nodes that are not members change nothing.
func (c *Core) Handle(from NodeID, msg any) {
	n := c.nodes[from]
	if n == nil || n.dead {
		return
	}
	switch m := msg.(type) {
	case *Submit:
		c.submit(n, m.Spec)
	case *Put:
		c.put(n, m)
	case *Hold:
		c.hold(n, m.ID)
	case *Release:
		c.unhold(n, m.ID)
	case *Want:
		c.want(n, m.ID)
	case *Lost:
		c.reportLost(n, m)
	case *Done:
		c.done(n, m)
	case *Blocked:
		c.blocked(n, m)
	case *Returned:
		c.returned(n, m)
	case *Cancel:
		c.cancel(m.ID, m.Recursive, "cancelled")
	case *Kill:
		c.kill(m)
	case *Emit:
		c.emit(n, m)
	case *Read:
		c.read(n, m)
	default:
		panic(fmt.Sprintf("core: message %T", msg))
	}
	c.schedule()
}

// Takes says whether Handle takes the message: nodes may send what is not for a core.
func Takes(msg any) bool {
	switch msg.(type) {
	case *Submit, *Put, *Hold, *Release, *Want, *Lost, *Done, *Blocked, *Returned, *Cancel, *Kill, *Emit, *Read:
		return true
	}
	return false
}

// StartJob makes a job known.
func (c *Core) StartJob(id JobID) {
	if c.jobs[id] == nil {
		j := &job{id: id, byKey: make(map[classKey]*class)}
		c.jobs[id] = j
		c.queue = append(c.queue, j)
	}
}

// CloseJob ends what the job has queued, cancels what runs, and refuses more.
func (c *Core) CloseJob(id JobID, reason string) {
	j := c.jobs[id]
	if j == nil || j.closed {
		return
	}
	j.closed = true
	for _, t := range j.open.all(isOpen) {
		if t.open {
			c.cancelTask(t, reason, FailJobEnded)
		}
	}
}

// EndJob forgets the job with all its objects. Nodes drop what they have of it by themselves.
func (c *Core) EndJob(id JobID) {
	c.CloseJob(id, "its job has ended")
	j := c.jobs[id]
	if j == nil {
		return
	}
	c.forgetGangs(j)
	for _, t := range j.open.all(isOpen) {
		c.leaveNode(t)
		delete(c.tasks, t.spec.ID)
		c.noKid(t)
		if t.spec.Kind == KindCall {
			c.callEnded(t)
		}
		t.state, t.open = taskEnded, false
	}
	for _, o := range j.objects.all(ofJob) {
		oid := o.id
		delete(c.objects, oid)
		if t := c.tasks[oid]; t != nil {
			delete(c.tasks, oid)
			c.unkeep(t)
		}
		if a := c.actors[oid]; a != nil && a.job == j {
			c.forgetActor(a)
		} else if a != nil {
			a.handles--
		}
		delete(c.actors, oid)
		delete(c.streams, oid)
		c.endGroup(oid)
		delete(c.kids, oid)
	}
	delete(c.jobs, id)
	for i, q := range c.queue {
		if q == j {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			break
		}
	}
	c.trimKept()
	c.schedule()
}

// JobTasks counts a job's tasks and calls, and those of them that have ended.
func (c *Core) JobTasks(id JobID) (tasks, done int) {
	if j := c.jobs[id]; j != nil {
		return j.tasks, j.done
	}
	return 0, 0
}

// Counts is what the core keeps.
type Counts struct{ Objects, Tasks, Queued, Actors, Streams, Groups, Lineage int }

// Counts tells how much the core keeps.
func (c *Core) Counts() Counts {
	n := Counts{
		Objects: len(c.objects), Tasks: len(c.tasks) - c.lineage.n, Actors: len(c.actors), Streams: len(c.streams),
		Groups: len(c.groups), Lineage: c.lineage.n,
	}
	for _, j := range c.jobs {
		for _, k := range j.classes {
			n.Queued += k.n
		}
	}
	for _, g := range c.line {
		n.Queued += g.size
	}
	return n
}
