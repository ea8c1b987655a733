package objectstore

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The test binary is also the program of child processes: a variable says which.
const childEnv = "OBJECTSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "map":
		childMap()
	case "churn":
		childChurn()
	}
}

// child starts a child process with one argument.
func child(t testing.TB, program, arg string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], arg)
	cmd.Env = append(os.Environ(), childEnv+"="+program)
	cmd.Stderr = os.Stderr
	return cmd
}

// childMap maps a value, prints its checksum and first byte, and the byte again for each line that it reads.
func childMap() {
	var m Mapping
	if err := json.Unmarshal([]byte(os.Args[1]), &m); err != nil {
		panic(err)
	}
	f, err := Map(m)
	if err != nil {
		panic(err)
	}
	fmt.Println(checksum32(f.Bytes()))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(f.Bytes()[0])
	}
	f.Release()
}

func churnConfig(dir string) Config {
	return Config{Dir: dir, MemoryLimit: 256 << 10, InlineMax: 2000, SpillFile: 150_000, Recover: true, flushWindow: time.Millisecond}
}

// childChurn puts and releases values for ever, and says before and after each what it does.
func childChurn() {
	s, err := Open(churnConfig(os.Args[1]))
	if err != nil {
		panic(err)
	}
	for id, why := range s.Recovery().Lost {
		fmt.Println("lost", id, why)
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano())))
	var ids []ID
	for i := 0; ; i++ {
		seed, size := r.Uint64(), r.IntN(1500)
		if r.IntN(3) == 0 {
			size = 5000 + r.IntN(30_000)
		}
		owner := fmt.Sprint("job ", i%3)
		id, err := s.Put(owner, value(seed, size))
		if err != nil {
			panic(err)
		}
		fmt.Println("put", id, owner, seed, size)
		ids = append(ids, id)
		if len(ids) > 60 {
			at := r.IntN(len(ids))
			fmt.Println("drop", ids[at])
			if err := s.Delete(ids[at]); err != nil {
				panic(err)
			}
			fmt.Println("dropped", ids[at], i)
			ids = append(ids[:at], ids[at+1:]...)
		}
		if i%40 == 39 {
			time.Sleep(3 * time.Millisecond) // let some of it be written
		}
	}
}

func scanID(t *testing.T, s string) ID {
	id, err := ParseID(s)
	require.NoError(t, err)
	return id
}

// A store is killed at random moments and opened again, over and over. What comes back is what was put, and what
// was deleted well before does not; nothing else is on disk.
func TestKilledStoreComesBack(t *testing.T) {
	rounds := 6
	if *long {
		rounds = 200
	}
	dir := t.TempDir()
	type known struct {
		owner     string
		seed      uint64
		size      int
		maybeGone bool
	}
	all := map[ID]*known{} // of all rounds
	back, absent, late := 0, 0, 0
	for round := range rounds {
		cmd := child(t, "churn", dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		kill := time.AfterFunc(time.Duration(30+rand.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		var dropped []ID
		for lines.Scan() {
			f := strings.Fields(lines.Text())
			switch {
			case len(f) == 6 && f[0] == "put":
				k := &known{owner: f[2] + " " + f[3]}
				if _, err := fmt.Sscan(f[4], &k.seed); err != nil {
					continue
				}
				if _, err := fmt.Sscan(f[5], &k.size); err != nil {
					continue
				}
				all[scanID(t, f[1])] = k
			case len(f) == 2 && f[0] == "drop" && len(f[1]) == 32:
				if k := all[scanID(t, f[1])]; k != nil {
					k.maybeGone = true
				}
				dropped = append(dropped, scanID(t, f[1]))
			}
		}
		kill.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()

		s, err := Open(churnConfig(dir))
		require.NoError(t, err, "round %d", round)
		require.Empty(t, s.Recovery().Lost, "what the index names is there")
		found := map[ID]bool{}
		for o := range s.Objects() {
			found[o.ID] = true
			k := all[o.ID]
			if k == nil { // killed between the put and the line that says so
				late++
				require.LessOrEqual(t, late, round+1)
				require.NoError(t, s.Delete(o.ID))
				continue
			}
			require.Equal(t, k.owner, o.Owner)
			require.Equal(t, []string{k.owner}, o.Holders)
			requireValue(t, s, o.ID, value(k.seed, k.size))
			back++
		}
		for id := range all {
			if !found[id] {
				_, err := s.Get(id)
				require.ErrorIs(t, err, ErrNotFound)
				absent++
				delete(all, id)
			}
		}
		// All but the last few deletions are on disk.
		for i, id := range dropped {
			if found[id] && i < len(dropped)-400 {
				t.Fatalf("round %d: %s was deleted %d deletions before the end", round, id, len(dropped)-i)
			}
		}
		check(t, s)
		requireNoOrphans(t, s)
		if round%3 == 2 { // and what an orderly end leaves is all there
			require.NoError(t, s.Close())
			if s, err = Open(churnConfig(dir)); err != nil {
				t.Fatal(err)
			}
			require.Equal(t, len(found), int(s.Recovery().Objects)+countDeleted(found, all))
		}
		for i := range 3 {
			if round%2 == 1 {
				s.ReleaseOwner(fmt.Sprint("job ", i))
			}
		}
		if round%2 == 1 {
			clear(all)
			requireEmpty(t, s)
		}
		require.NoError(t, s.Close())
	}
	t.Logf("%d objects came back, %d were gone, %d unannounced", back, absent, late)
	require.Positive(t, back)
}

func countDeleted[V any](found map[ID]bool, all map[ID]V) (n int) {
	for id := range found {
		if _, ok := all[id]; !ok {
			n++
		}
	}
	return n
}

// requireNoOrphans looks that the spill directory has only files that the store knows, of the length it knows.
func requireNoOrphans(t *testing.T, s *Store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := map[string]int64{}
	for sf := range s.disk.all {
		sizes[sf.name()] = sf.size
	}
	files, err := os.ReadDir(s.disk.dir)
	require.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		size, ok := sizes[f.Name()]
		require.True(t, ok, "%s is an orphan", f.Name())
		require.LessOrEqual(t, size, info.Size())
	}
}
