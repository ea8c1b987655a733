package shuffle

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"

	"manta/actors"
	"manta/objectstore"
	"manta/shuffle/shufflepb"
)

// kept is a producer's output of a mode that stores blocks, kept beyond its reading: another attempt of a job may take it
// over instead of having it made again. Its objects are held by their owner, the job, beside the readers, each of whom has
// a hold of its own on what it was told of.
type kept struct {
	s *Service

	mu    sync.Mutex
	owner actors.JobID       // guarded by mu, like all below
	file  *spillFile         // of mode disk, else nil
	refs  [][]*shufflepb.Ref // by partition; the first list for all of a broadcast
	toAll bool
	whole bool  // its writer came to its end, and no rows were left out because nobody wanted them
	given bool  // it is not kept any more
	read  int64 // bytes that readers have given back
	spare bool  // nobody reads it, unless its job is followed by another one
}

// keepBelow is up to how much of a store's memory, in parts of a hundred, outputs are kept beyond their reading. It is
// less than where the store begins to spill: what was read is not worth the disk's time.
const keepBelow = 70

// holderName names the hold that a partition's reader has on the objects of a producer.
func holderName(e *Edge, producer, partition int) string {
	return fmt.Sprintf("%s/%d/%d/%d", e.Job, e.ID, producer, partition)
}

// parseHolder finds the output that a reader's hold is about.
func parseHolder(name string) (job actors.JobID, k fileKey, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 {
		return "", k, false
	}
	edge, err := strconv.ParseUint(parts[1], 10, 32)
	if err != nil {
		return "", k, false
	}
	producer, err := strconv.ParseUint(parts[2], 10, 32)
	return actors.JobID(parts[0]), fileKey{uint32(edge), uint32(producer)}, err == nil
}

// keep begins to keep the output of a producer. What was kept of it before goes.
func (j *job) keep(s *Service, k fileKey, toAll bool, partitions int) (*kept, error) {
	n := &kept{s: s, owner: j.id, toAll: toAll, refs: make([][]*shufflepb.Ref, partitions)}
	j.mu.Lock()
	if j.ended {
		j.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	old := j.kept[k]
	j.kept[k] = n
	if old != nil && old.wholeFile() != nil {
		delete(j.files, k)
	}
	j.mu.Unlock()
	if old != nil {
		old.discard()
	}
	return n, nil
}

// add keeps one more object, if the output is kept still. Its owner holds it.
func (k *kept) add(p int, ref *shufflepb.Ref) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.given {
		return false
	}
	k.refs[p] = append(k.refs[p], ref)
	return true
}

// end is the writer's: the output is whole now, or not worth to be kept.
func (k *kept) end(whole bool) {
	k.mu.Lock()
	k.whole = whole && !k.given
	keep := k.whole
	k.mu.Unlock()
	if !keep {
		k.giveUp()
	}
}

// isWhole says whether all of the output is there.
func (k *kept) isWhole() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.whole
}

// wholeFile is the file of an output that is kept whole in one, else nil.
func (k *kept) wholeFile() *spillFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.whole {
		return nil
	}
	return k.file
}

// setFile says that the output is in a file, and where.
func (k *kept) setFile(f *spillFile, index [][]*shufflepb.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.file, k.refs = f, index
}

// discard gives up an output of which no job knows any more.
func (k *kept) discard() {
	if f := k.wholeFile(); f != nil {
		f.remove()
	}
	k.giveUp()
}

// giveUp leaves the objects to their readers, and a file to the job.
func (k *kept) giveUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.letGo()
}

// dispense gives up an output that can be done without, unless it is needed by now: another job may have it.
func (k *kept) dispense() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dispensable() > 0 {
		k.letGo()
	}
}

// letGo is giveUp under mu.
func (k *kept) letGo() {
	refs := k.refs
	k.refs, k.whole, k.given = make([][]*shufflepb.Ref, len(refs)), false, true
	for _, list := range refs {
		for _, ref := range list {
			if id, err := objectstore.IDFromBytes(ref.GetObject()); err == nil {
				_ = k.s.node.Store().Release(id, string(k.owner)) // gone already at the end of a job
			}
		}
	}
}

// wasRead notes that a reader gave a block back.
func (s *Service) wasRead(ref *shufflepb.Ref) {
	id, key, ok := parseHolder(ref.GetHolder())
	if !ok {
		return
	}
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil {
		return
	}
	j.mu.Lock()
	k := j.kept[key]
	j.mu.Unlock()
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read += ref.GetSize()
}

// relieve makes room for n more bytes in the store, when its memory is short: of what is kept the outputs go first that nobody
// reads, then those of which most was read.
func (s *Service) relieve(n int64) {
	for {
		st := s.node.Store().Stats()
		if st.MemoryUsed+n <= st.MemoryLimit/100*keepBelow {
			return
		}
		k := s.leastNeeded()
		if k == nil {
			return
		}
		k.dispense()
	}
}

// leastNeeded is the kept output that is given up first, or nil when readers are still to come for all. A file takes no memory.
func (s *Service) leastNeeded() (least *kept) {
	var read int64
	for _, j := range s.allJobs() {
		j.mu.Lock()
		for _, k := range j.kept {
			k.mu.Lock()
			if bytes := k.dispensable(); bytes > read {
				least, read = k, bytes
			}
			k.mu.Unlock()
		}
		j.mu.Unlock()
	}
	return least
}

// dispensable are the bytes that no reader is to come for; of an output that is spare it is more than any other's. mu is held.
func (k *kept) dispensable() int64 {
	switch {
	case k.given || k.file != nil:
		return 0
	case k.spare:
		return math.MaxInt64
	}
	return k.read
}

// allJobs is a copy.
func (s *Service) allJobs() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := make([]*job, 0, len(s.jobs))
	for _, j := range s.jobs {
		jobs = append(jobs, j)
	}
	return jobs
}

// move makes an output that is kept whole another job's, and says whether it is now. What cannot be moved is lost.
func (s *Service) move(from, to *job, key fileKey) bool {
	from.mu.Lock()
	k := from.kept[key]
	if k == nil || from.ended || !k.isWhole() {
		from.mu.Unlock()
		return false
	}
	file := k.wholeFile()
	delete(from.kept, key)
	if file != nil {
		delete(from.files, key)
	}
	from.mu.Unlock()
	if err := k.changeOwner(file, to); err != nil {
		k.discard()
		return false
	}
	to.mu.Lock()
	// A writer that is there already means that the order comes late, and nobody waits for it any more.
	moved := !to.ended && to.kept[key] == nil && to.files[key] == nil
	if moved {
		to.kept[key] = k
		if file != nil {
			to.files[key] = file
		}
	}
	to.mu.Unlock()
	if !moved {
		k.discard()
	}
	return moved
}

// changeOwner moves the objects and the file to another job. No reader of the old one may be left.
func (k *kept) changeOwner(file *spillFile, to *job) error {
	if file != nil {
		dir, err := to.folder(k.s)
		if err != nil {
			return err
		}
		if err := file.moveTo(dir); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.given { // just now
		return fmt.Errorf("%w: nothing is kept any more", ErrEdge)
	}
	k.owner, k.read, k.spare = to.id, 0, false
	for _, list := range k.refs {
		for _, ref := range list {
			if len(ref.GetObject()) == 0 {
				continue
			}
			id, err := objectstore.IDFromBytes(ref.GetObject())
			if err != nil {
				return err
			}
			if err := k.s.node.Store().Move(id, string(to.id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveTo moves the file into another folder.
func (f *spillFile) moveTo(dir string) error {
	place, err := os.CreateTemp(dir, "rows-*.arrow")
	if err != nil {
		return fmt.Errorf("shuffle: mode %s: %w", Disk, err)
	}
	_ = place.Close()
	if err := os.Rename(f.path, place.Name()); err != nil {
		return fmt.Errorf("shuffle: mode %s: %w", Disk, err)
	}
	f.path = place.Name()
	return nil
}
