// Package tcp connects ranks that are processes on a few hosts: one TCP connection between every two ranks.
//
// A rank that is killed, stopped or cut off is named by all others: at once where its connections end, else when it has
// given no sign of life for Config.Silence. Nothing is encrypted: this is for a network whose hosts trust each other, and
// the token keeps processes of other jobs and strangers out.
package tcp
