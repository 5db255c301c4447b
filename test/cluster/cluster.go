// Package cluster runs jobs of several processes as a person would start them: by launchers, by hand, on hosts that network namespaces
// stand for. dryrun.sh, beside it, takes ranks through everything they do.
package cluster
