package planner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"manta/actors"
	"manta/planner/kernel"
	"manta/planner/wire"
	"manta/shuffle"
)

// Service is the SQL part of a node: the DuckDB instance in which its stage
// tasks run and, on the head, the instance in which queries are planned and the
// calls of clients.
type Service struct {
	wire.UnimplementedSQLServer

	shuffle *shuffle.Service
	config  serviceConfig

	// These, when not nil, are told of every attempt whose tasks are about to be submitted, and were: for tests. Set before
	// any query.
	planned, submitted func(*run)
	// opened, when not nil, is told by every stage task that its exchanges are open; nothing is read yet. For tests, as these.
	opened func(tc *actors.TaskContext, stage, index int)

	node    *actors.Node // set by Register, before any task
	exec    *kernel.DB   // opened by Register
	memory  *memory
	schemas schemas
	footers footers
	zone    atomic.Pointer[string] // see timeZone

	mu        sync.Mutex
	closed    bool
	plan      *kernel.DB // guarded by mu: opened by the first query
	undivided *kernel.DB // guarded by mu: runs queries whole, opened by the first
}

type serviceConfig struct {
	memory  int64  // bytes DuckDB may use, in both instances that run tasks
	threads int    // of the instance for queries that are not distributed
	tempDir string // where DuckDB spills
	tempMax int64  // bytes it may spill
	head    bool
	log     *slog.Logger

	batchRows int // for tests: the most rows of a batch on its way
}

// duckSettings are those of every instance. An extension that is installed on the
// machine, such as the one for s3:// and https://, is loaded when a query needs it;
// none is fetched from anywhere.
var duckSettings = map[string]string{"parquet_metadata_cache": "true", "autoload_known_extensions": "true"}

// The folders, in tempDir, where the instances for planning and for whole queries spill.
const (
	planningFolder = "planning"
	wholeFolder    = "whole"
)

// maxPlanningMemory bounds what DuckDB may use to plan, beside the node's other
// memory: it reads footers, and no data.
const maxPlanningMemory = 256 << 20

func newService(sh *shuffle.Service, c serviceConfig) *Service {
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	s := &Service{shuffle: sh, config: c}
	s.memory = &memory{total: c.memory, now: [2]int64{most(c.memory), least(c.memory)}}
	s.memory.limit = [2]func(int64) error{
		stageTasks: func(bytes int64) error { return s.exec.SetMemoryLimit(bytes) },
		wholeTasks: func(bytes int64) error {
			db, err := s.wholeDB()
			if err != nil {
				return err
			}
			return db.SetMemoryLimit(bytes)
		},
	}
	return s
}

// Register opens DuckDB and, on the head, offers the SQL calls.
func (s *Service) Register(n *actors.Node, r grpc.ServiceRegistrar) error {
	s.node = n
	if err := os.MkdirAll(s.config.tempDir, 0o700); err != nil {
		return fmt.Errorf("planner: spill folder: %w", err)
	}
	if err := sweepSpill(s.config.tempDir); err != nil {
		return err
	}
	db, err := kernel.Open(kernel.Config{
		MemoryLimit:        most(s.config.memory),
		TempDir:            s.config.tempDir,
		MaxTempBytes:       s.config.tempMax,
		Threads:            1, // a task runs on the thread that calls it, so one that waits blocks no other
		DisabledOptimizers: kernel.ExecutingDisabled,
		LosslessArrow:      true,
		Settings:           duckSettings,
	})
	if err != nil {
		return err
	}
	s.exec = db
	if s.config.head {
		wire.RegisterSQLServer(r, s)
	}
	return nil
}

// sweepSpill removes the spill files of an earlier process, which was killed. The
// node's data folder is its own by now: the object store in it holds the lock.
func sweepSpill(dir string) error {
	for _, folder := range []string{dir, filepath.Join(dir, planningFolder), filepath.Join(dir, wholeFolder)} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("planner: spill folder: %w", err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "duckdb_temp_") {
				continue
			}
			if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
				return fmt.Errorf("planner: spill folder: %w", err)
			}
		}
	}
	return nil
}

// plannerDB returns the instance for planning, opened at its first use. It is
// another one than for executing: the optimizers that are off while planning
// are off for a whole instance.
func (s *Service) plannerDB() (*kernel.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, context.Canceled
	}
	if s.plan == nil {
		db, err := kernel.Open(kernel.Config{
			MemoryLimit:        min(maxPlanningMemory, s.config.memory/2),
			TempDir:            filepath.Join(s.config.tempDir, planningFolder),
			Threads:            1,
			DisabledOptimizers: kernel.PlanningDisabled,
			Settings:           duckSettings,
		})
		if err != nil {
			return nil, err
		}
		s.plan = db
	}
	return s.plan, nil
}

// wholeDB returns the instance for queries that are not distributed. Its queries
// read no exchange, so they may share its threads.
func (s *Service) wholeDB() (*kernel.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, context.Canceled
	}
	if s.undivided == nil {
		db, err := kernel.Open(kernel.Config{
			MemoryLimit:   least(s.config.memory), // until it has a task
			TempDir:       filepath.Join(s.config.tempDir, wholeFolder),
			MaxTempBytes:  s.config.tempMax,
			Threads:       s.config.threads,
			LosslessArrow: true,
			Settings:      duckSettings,
		})
		if err != nil {
			return nil, err
		}
		s.undivided = db
	}
	return s.undivided, nil
}

// JobEnded has nothing to do: a job's tasks have ended before, with all they hold.
func (s *Service) JobEnded(actors.JobID) {}

// NodeDead has nothing to do: the exchanges and the job fail with the node's name.
func (s *Service) NodeDead(actors.NodeID, string) {}

// Close closes DuckDB; its tasks have ended before.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var err error
	for _, db := range []*kernel.DB{s.plan, s.undivided, s.exec} {
		if db != nil {
			if e := db.Close(); e != nil && err == nil {
				err = e
			}
		}
	}
	return err
}
