package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"manta/actors/internal/wire"
	"manta/objectstore"
)

var (
	// ErrNodeDead: the node left the cluster or was declared dead.
	ErrNodeDead = errors.New("actors: node is dead")
	// ErrActorNotFound: the node has no actor of that name (any more).
	ErrActorNotFound = errors.New("actors: no such actor")
	// ErrActorExists: the node has an actor of that name.
	ErrActorExists = errors.New("actors: actor exists")
	// ErrTimeout: no answer within the deadline. The handler may or may not have run.
	ErrTimeout = errors.New("actors: no answer in time")
	// ErrTooLarge: a control message is over MaxMessage.
	ErrTooLarge = errors.New("actors: message is too large")
	// ErrClosed: this node is closed, or closing.
	ErrClosed = errors.New("actors: node is closed")
	// ErrNoFunc: no task function of that name is registered on the node.
	ErrNoFunc = errors.New("actors: no such task function")
	// ErrPanic: user code panicked.
	ErrPanic = errors.New("actors: panic")
	// ErrJobEnded: the job has ended, or is being stopped.
	ErrJobEnded = errors.New("actors: job has ended")
	// ErrJobStopped: the job was stopped by somebody.
	ErrJobStopped = errors.New("actors: job was stopped")
	// ErrJobUnknown: the head knows no such job.
	ErrJobUnknown = errors.New("actors: no such job")
	// ErrNotHead: only the head can do this.
	ErrNotHead = errors.New("actors: this node is not the head")
	// ErrHeadLost: the head did not answer for longer than the lease, or left.
	ErrHeadLost = errors.New("actors: head is lost")
	// ErrUnreachable: nothing answers at the address.
	ErrUnreachable = errors.New("actors: nobody answers")
	// ErrToken: the other side has another token, or one of the two has none.
	ErrToken = errors.New("actors: wrong token")
	// ErrVersion: the other side has another version.
	ErrVersion = errors.New("actors: another version")
	// ErrListen: the address cannot be listened on.
	ErrListen = errors.New("actors: cannot listen")
)

// NodeDeadError says which node is dead, and why. It is ErrNodeDead.
type NodeDeadError struct {
	Node   NodeID
	Reason string
}

func (e *NodeDeadError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("node %s is dead", e.Node)
	}
	return fmt.Sprintf("node %s is dead: %s", e.Node, e.Reason)
}

// Is makes errors.Is(err, ErrNodeDead) hold.
func (e *NodeDeadError) Is(target error) bool { return target == ErrNodeDead }

// TaskError is the failure of a Task: what failed, and where.
type TaskError struct {
	Task TaskID
	Name string
	Node NodeID
	Err  error
}

func (e *TaskError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("task %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("task %s on node %s: %v", e.Name, e.Node, e.Err)
}

func (e *TaskError) Unwrap() error { return e.Err }

// remoteError is an error that came from another process: its text, and those of
// the errors that it wrapped which are registered here too.
type remoteError struct {
	text  string
	kinds []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.kinds }

var registeredErrors = struct {
	sync.RWMutex
	byName map[string]error
}{byName: map[string]error{
	"canceled":            context.Canceled,
	"deadline":            context.DeadlineExceeded,
	"actors.node_dead":    ErrNodeDead,
	"actors.not_found":    ErrActorNotFound,
	"actors.timeout":      ErrTimeout,
	"actors.too_large":    ErrTooLarge,
	"actors.closed":       ErrClosed,
	"actors.no_func":      ErrNoFunc,
	"actors.panic":        ErrPanic,
	"actors.job_ended":    ErrJobEnded,
	"actors.job_stopped":  ErrJobStopped,
	"actors.job_unknown":  ErrJobUnknown,
	"actors.not_head":     ErrNotHead,
	"actors.head_lost":    ErrHeadLost,
	"actors.version":      ErrVersion,
	"actors.actor_exists": ErrActorExists,
	"store.not_found":     objectstore.ErrNotFound,
	"store.lost":          objectstore.ErrLost,
	"store.full":          objectstore.ErrFull,
	"store.owner_ended":   objectstore.ErrOwnerEnded,
}}

// RegisterError lets errors.Is find err in errors that come from other processes.
// Call it from an init function, in every process of the cluster under the same
// name; a name that is taken panics.
func RegisterError(name string, err error) {
	registeredErrors.Lock()
	defer registeredErrors.Unlock()
	if _, ok := registeredErrors.byName[name]; ok {
		panic("actors: error name " + name + " is registered twice")
	}
	registeredErrors.byName[name] = err
}

// cleanText makes any text fit for a control message: protobuf refuses what is not
// UTF-8, and a message has a size limit.
func cleanText(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + " … (cut)"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// encodeError makes an error ready to cross to another process.
func encodeError(err error) *wire.Failure {
	if err == nil {
		return nil
	}
	f := &wire.Failure{Text: cleanText(err.Error())}
	registeredErrors.RLock()
	defer registeredErrors.RUnlock()
	for name, kind := range registeredErrors.byName {
		if errors.Is(err, kind) {
			f.Kinds = append(f.Kinds, name)
		}
	}
	slices.Sort(f.Kinds)
	return f
}

// decodeError gives the error that encodeError took.
func decodeError(f *wire.Failure) error {
	if f == nil {
		return nil
	}
	e := &remoteError{text: f.Text}
	registeredErrors.RLock()
	defer registeredErrors.RUnlock()
	for _, name := range f.Kinds {
		if kind, ok := registeredErrors.byName[name]; ok {
			e.kinds = append(e.kinds, kind)
		}
	}
	return e
}
