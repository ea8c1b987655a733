package main

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"manta/actors"
	"manta/planner"
)

func listCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List what a cluster has",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to list: nodes, jobs, tasks, actors or objects")
		},
	}
	c.AddCommand(
		listing("nodes", "List the nodes, dead ones too", func(c *cobra.Command, client *planner.Client, asJSON bool) error {
			nodes, err := client.Nodes(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), nodes)
			}
			writeNodes(c.OutOrStdout(), nodes)
			return nil
		}),
		listing("jobs", "List the jobs, the latest ended ones too", func(c *cobra.Command, client *planner.Client, asJSON bool) error {
			jobs, err := client.Jobs(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				if jobs == nil {
					jobs = []actors.JobInfo{}
				}
				return writeJSON(c.OutOrStdout(), jobs)
			}
			writeJobs(c.OutOrStdout(), jobs)
			return nil
		}),
		listing("tasks", "List the tasks and calls that have not ended, and what each waits for", func(c *cobra.Command, client *planner.Client, asJSON bool) error {
			tasks, err := client.Tasks(c.Context(), limitOf(c))
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), tasks)
			}
			writeTasks(c.OutOrStdout(), tasks)
			return nil
		}),
		listing("actors", "List the actors that are not dead", func(c *cobra.Command, client *planner.Client, asJSON bool) error {
			list, err := client.Actors(c.Context(), limitOf(c))
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), list)
			}
			writeActors(c.OutOrStdout(), list)
			return nil
		}),
		listObjects(),
	)
	for _, sub := range c.Commands() {
		if name := sub.Name(); name == "tasks" || name == "actors" {
			sub.Flags().Int("limit", 1000, "list so many at most")
		}
	}
	return c
}

func listing(what, short string, show func(*cobra.Command, *planner.Client, bool) error) *cobra.Command {
	var f headFlags
	c := &cobra.Command{
		Use:   what,
		Short: short,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := f.ask(c)
			if err != nil {
				return err
			}
			defer client.Close()
			return show(c, client, f.output == "json")
		},
	}
	f.add(c)
	return c
}

func limitOf(c *cobra.Command) int {
	n, _ := c.Flags().GetInt("limit")
	return max(n, 0)
}

func writeTasks(w io.Writer, tasks []actors.RunInfo) {
	t := newTable(w, "task", "job", "state", "attempt", "node", "name", "waits for")
	for _, i := range tasks {
		t.AppendRow(table.Row{i.ID, i.Job, i.State, i.Attempt, i.Node, i.Name, i.Why})
	}
	t.Render()
}

func writeActors(w io.Writer, list []actors.ActorInfo) {
	t := newTable(w, "actor", "job", "state", "restarts", "calls", "node", "class", "name", "waits for")
	for _, a := range list {
		t.AppendRow(table.Row{a.ID, a.Job, a.State, a.Restarts, a.Calls, a.Node, a.Class, a.Name, a.Why})
	}
	t.Render()
}
