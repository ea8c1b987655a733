package core

// NodeID names a node's incarnation, JobID a job.
type (
	NodeID string
	JobID  string
)

// ID names an object, and also the task, actor or stream behind it. The upper bits are the number of the node that made it.
type ID uint64

// NumberBits is how far a node's number is shifted in an ID.
const NumberBits = 40

// Value is a value as it travels: encoded, or as it lies in a node's store, or alive in this process.
type Value struct {
	Data     []byte   // encoded in place
	Live     Live     // in the memory of the process that has it; Data is nil
	Node     NodeID   // not "": in this node's store under Key
	Key      [16]byte // immutable
	Size     int64    // bytes of the encoding, or an estimate
	Contains []ID     // objects that the value refers to, each once for every time
}

// MaxInline is how many bytes of values one message carries in place, about.
const MaxInline = 4 << 20

// Asked as an argument's Size says that the message had no room for it: its node has to ask (Want).
const Asked = -1

// Live is a Go value that can be shared as it is, because nobody can change it.
type Live interface{ Encode() ([]byte, error) }

// Failure is an error that travels.
type Failure struct {
	Text   string
	Kinds  []string // names of registered errors that it wraps
	Detail []byte   // a registered error type's value, encoded
	Stack  string
	System bool   // not the function's own error: may be tried again
	Retry  bool   // the function's own error, of a kind that is to be tried again
	Lost   ID     // an argument whose value could not be had
	LostAt NodeID // from this node
	At     NodeID // where it happened
}

// Kind is what a Submit asks for.
type Kind uint8

const (
	KindTask   Kind = iota // run a function
	KindCreate             // make an actor
	KindCall               // call an actor's method
	KindLookup             // a handle of an actor that exists, by name
	KindGroup              // a placement group
	KindOpen               // a stream that whoever has its sender fills
)

// Arg is an argument: a reference, resolved before the start, or a value.
type Arg struct {
	Ref ID // 0: Value
	Val *Value
}

// Spec is what is to be run. It is immutable once submitted.
type Spec struct {
	ID      ID
	Job     JobID
	Kind    Kind
	Stream  bool // yields items instead of a result
	Results int  // objects ID … ID+Results-1
	Func    string
	Parent  ID // the task that submitted it; 0 = the driver
	Actor   ID // KindCall: a handle
	Args    []Arg
	Opt     *Options
}

// Messages from nodes.
type (
	// Submit starts something. Its sender holds the objects that come of it and is told when they are ready.
	Submit struct{ Spec *Spec }
	// Put makes an object of a value; or of the result of a call that the core does not know of, which may also be still to come,
	// or have failed.
	Put struct {
		ID      ID
		Job     JobID
		Value   Value
		Pending bool     // another Put will tell, or the call itself will be submitted
		Failure *Failure // instead of a value
		For     NodeID   // not "": this node holds it, and is told
	}
	// Hold and Release say that the node has its first, and no more, handle of an object.
	Hold    struct{ ID ID }
	Release struct{ ID ID }
	// Want asks to be told when the object is ready.
	Want struct{ ID ID }
	// Lost says that the value of an object is not where it was said to be.
	Lost struct {
		ID   ID
		Node NodeID
	}
	// Done ends an attempt.
	Done struct {
		ID      ID
		Attempt int32
		Results []Value
		Failure *Failure
		Nanos   int64 // how long the function ran
	}
	// Blocked says that a task gave its CPU back while it waits, or took it again.
	Blocked struct {
		ID      ID
		Attempt int32
		On      bool
	}
	// Cancel ends a task, an actor's call or a stream's source, and what they submitted. The core sends it on, not recursive, to the node
	// that has promised the result of a call.
	Cancel struct {
		ID        ID
		Recursive bool
	}
	// Kill ends an actor.
	Kill struct {
		Actor   ID
		Restart bool // as if it had died by itself
	}
	// Emit is the next item of a stream from its source.
	Emit struct {
		Stream  ID
		Attempt int32
		Index   int64
		Value   Value
		End     bool // no item: the source is through, as many as Index says
		Failure *Failure
	}
	// Read says how many items a reader has consumed, and up to which it takes more. With a new Turn it is somebody else who goes
	// on as this reader, and does not know how far it is: Upto is how many he takes.
	Read struct {
		Stream   ID
		Reader   int32
		Consumed int64
		Upto     int64
		Turn     ID     // which of those that read as this reader, one after the other
		Lost     NodeID // not "": the next item was not there, where it was said to be
	}
	// Call is a call of an actor that came straight from the node of its caller. It is answered, always, by Answer.
	Call struct {
		Spec        *Spec
		Incarnation int32 // of the actor that it is for
	}
	// Answer ends a Call.
	Answer struct {
		ID      ID
		Value   Value
		Failure *Failure
		Missed  bool // it has not begun: the actor is not here
		AtHead  bool // the value was put for the caller
	}
	// Fence asks for a Fenced with its number, when everything that was sent before has come.
	Fence  struct{ Number uint64 }
	Fenced struct{ Number uint64 }
	// Returned gives back tasks that were sent ahead and did not begin.
	Returned struct {
		ID      ID
		Attempt int32
	}
)

// Messages to nodes.
type (
	// Welcome tells a node its number.
	Welcome struct{ Number uint64 }
	// Start runs an attempt. Args are values, in place or in a store.
	Start struct {
		Spec    *Spec
		Attempt int32
		Args    []Value
		Actor   ID      // the actor itself (KindCreate, KindCall)
		Skip    int64   // items of the stream that are not needed again
		Base    int64   // items that its readers have consumed
		Window  int64   // items it may be ahead of the slowest reader
		Places  []Where // of actors of which the arguments have handles
	}
	// Stop cancels an attempt.
	Stop struct {
		ID      ID
		Attempt int32
		Reason  string
	}
	// StopActor ends an actor on its node.
	StopActor struct {
		Actor  ID
		Reason string
	}
	// Where tells a node that has a handle where the actor lives, so that it can be called straight.
	Where struct {
		Actor       ID
		Node        NodeID
		Incarnation int32
	}
	// StopCalls cancels the calls that a task made straight.
	StopCalls struct{ Parent ID }
	// Ready tells an object's value or failure.
	Ready struct {
		ID      ID
		Value   Value
		Failure *Failure
	}
	// Free drops a value from the node's store.
	Free struct{ Key [16]byte }
	// Credit tells a stream's source how far its readers are.
	Credit struct {
		Stream   ID
		Attempt  int32
		Consumed int64
		Closed   bool // nobody reads any more
	}
	// Items are a stream's items from Index on, for one reader.
	Items struct {
		Stream  ID
		Reader  int32
		Turn    ID // of Read
		Index   int64
		Values  []Value
		End     bool // nothing comes after these
		Failure *Failure
	}
)
