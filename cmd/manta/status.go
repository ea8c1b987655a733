package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"manta/actors"
	"manta/planner"
)

// headFlags are the flags of commands that ask a running head.
type headFlags struct {
	clusterFlags
	output string
}

func (f *headFlags) add(c *cobra.Command) {
	f.addHead(c.Flags())
	c.Flags().StringVarP(&f.output, "output", "o", "table", "format: table or json")
}

// ask connects to the head.
func (f *headFlags) ask(c *cobra.Command) (*planner.Client, error) {
	if f.output != "table" && f.output != "json" {
		return nil, usagef("unknown output format %q; use table or json", f.output)
	}
	if f.head == "" {
		return nil, usagef("give the head's address with --head or MANTA_HEAD")
	}
	return planner.Connect(c.Context(), planner.Config{Head: f.head, Token: f.token})
}

func statusCommand() *cobra.Command {
	var f headFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Show a cluster's nodes and running jobs",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := f.ask(c)
			if err != nil {
				return err
			}
			defer client.Close()
			nodes, err := client.Nodes(c.Context())
			if err != nil {
				return err
			}
			jobs, err := client.Jobs(c.Context())
			if err != nil {
				return err
			}
			live := []actors.JobInfo{}
			for _, j := range jobs {
				if j.State == actors.JobPending || j.State == actors.JobRunning {
					live = append(live, j)
				}
			}
			out := c.OutOrStdout()
			if f.output == "json" {
				return writeJSON(out, map[string]any{"nodes": nodes, "jobs": live})
			}
			writeNodes(out, nodes)
			fmt.Fprintln(out)
			writeJobs(out, live)
			return nil
		},
	}
	f.add(c)
	return c
}

func jobCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "job",
		Short: "Act on a job",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return usagef("say what to do: stop") },
	}
	var f headFlags
	stop := &cobra.Command{
		Use:   "stop JOB",
		Short: "End a job on every node",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give one job; manta list jobs shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			client, err := f.ask(c)
			if err != nil {
				return err
			}
			defer client.Close()
			return client.StopJob(c.Context(), actors.JobID(args[0]), "stopped by manta job stop")
		},
	}
	f.addHead(stop.Flags())
	f.output = "table"
	c.AddCommand(stop)
	return c
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func newTable(w io.Writer, columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = 0
	t.SetStyle(style)
	t.AppendHeader(table.Row(columns))
	return t
}

func writeNodes(w io.Writer, nodes []actors.NodeInfo) {
	t := newTable(w, "node", "address", "state", "cpus", "memory", "running", "waiting", "role", "note")
	for _, n := range nodes {
		role := "worker"
		if n.Head {
			role = "head"
		}
		t.AppendRow(table.Row{n.ID, n.Address, n.State, n.CPUs, humanize.IBytes(uint64(n.MemoryBytes)), n.RunningTasks, n.WaitingTasks, role, n.Reason})
	}
	t.Render()
}

func writeJobs(w io.Writer, jobs []actors.JobInfo) {
	t := newTable(w, "job", "state", "tasks", "seconds", "name", "error")
	for _, j := range jobs {
		end := j.Ended
		if end.IsZero() {
			end = time.Now()
		}
		t.AppendRow(table.Row{j.ID, j.State, fmt.Sprintf("%d/%d", j.TasksDone, j.Tasks), fmt.Sprintf("%.1f", end.Sub(j.Submitted).Seconds()), j.Name, j.Error})
	}
	t.Render()
}
