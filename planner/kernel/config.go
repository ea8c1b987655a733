package kernel

import (
	"errors"
	"fmt"
	"strconv"
)

// PlanningDisabled are the optimizers that must be off in an instance that serves [Conn.Plan]: their output can't be
// serialized, or it would tie a plan to one reader of the whole input.
const PlanningDisabled = "compressed_materialization,column_lifetime,common_aggregate,late_materialization," +
	"top_n_window_elimination,join_filter_pushdown,in_clause,sampling_pushdown"

// ExecutingDisabled are the optimizers that must be off in an instance that runs fragments: joins then run in the
// order and with the build side that the fragment's text gives, and nothing is computed twice, for an input is a
// stream that can be read once.
const ExecutingDisabled = "join_order,build_side_probe_side,window_self_join"

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("kernel: bad configuration")

// NoRangeMergeJoin is a statement after which a connection joins by two inequalities in another way than by DuckDB's
// IEJoin: that of DuckDB 1.5 reads through a null pointer, and ends the process, when an outer join of many rows finds
// no match at all.
const NoRangeMergeJoin = "SET merge_join_threshold = 1000000000000000"

// Config says how a DuckDB instance is opened. The zero value is usable: DuckDB's own limits, one thread, no spilling.
type Config struct {
	MemoryLimit        int64             // bytes; 0 = DuckDB's default, 80 % of the machine's memory
	TempDir            string            // where operators spill; "" = they don't
	MaxTempBytes       int64             // bytes of spill files in TempDir; 0 = DuckDB's default, 90 % of the free disk
	Threads            int               // 0 = 1; see the package comment
	DisabledOptimizers string            // comma-separated, for the whole instance
	LosslessArrow      bool              // see Exchangeable
	Settings           map[string]string // further settings, by DuckDB's names, set globally after the rest; they win
}

// Validate reports the first field that can't be used.
func (c Config) Validate() error {
	switch {
	case c.MemoryLimit < 0:
		return fmt.Errorf("%w: memory limit of %d bytes", ErrConfig, c.MemoryLimit)
	case c.MaxTempBytes < 0:
		return fmt.Errorf("%w: temp limit of %d bytes", ErrConfig, c.MaxTempBytes)
	case c.MaxTempBytes > 0 && c.TempDir == "":
		return fmt.Errorf("%w: a temp limit needs a temp directory", ErrConfig)
	case c.Threads < 0:
		return fmt.Errorf("%w: %d threads", ErrConfig, c.Threads)
	}
	return nil
}

// String shows the configuration in one line.
func (c Config) String() string {
	return fmt.Sprintf("threads=%d memory=%d temp=%q", max(c.Threads, 1), c.MemoryLimit, c.TempDir)
}

// settings returns the configuration as DuckDB's own settings, apart from c.Settings. Nothing is ever downloaded or loaded from outside:
// what a query may use is what is linked in.
func (c Config) settings() map[string]string {
	s := map[string]string{
		"threads":                      strconv.Itoa(max(c.Threads, 1)),
		"temp_directory":               c.TempDir,
		"disabled_optimizers":          c.DisabledOptimizers,
		"arrow_lossless_conversion":    strconv.FormatBool(c.LosslessArrow),
		"autoinstall_known_extensions": "false",
		"autoload_known_extensions":    "false",
		"allow_community_extensions":   "false",
		"allow_persistent_secrets":     "false",
	}
	if c.MemoryLimit > 0 {
		s["memory_limit"] = bytesText(c.MemoryLimit)
	}
	return s
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + "B" }
