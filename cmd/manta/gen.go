package main

import "github.com/spf13/cobra"

func genCommand() *cobra.Command   { return &cobra.Command{Use: "gen"} }
func benchCommand() *cobra.Command { return &cobra.Command{Use: "bench"} }
