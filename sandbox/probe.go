// SPDX-License-Identifier: Apache-2.0

package sandbox

import "fmt"

// Abilities are what can be had on this machine by this user.
type Abilities struct {
	Confinement          // the strongest
	Lacking     []string // why no stronger level can be had, a sentence each
}

// Probe finds that out by doing: each level is tried on a process that does nothing,
// from the strongest on, until one works. It takes some tens of milliseconds.
func Probe() Abilities {
	found := Abilities{Confinement: Confinement{Level: LevelOff, Landlock: landlockVersion()}}
	if !canConfine {
		found.Lacking = []string{errPolicyLevel.Error()}
		return found
	}
	for _, level := range Levels() {
		if level == LevelOff {
			break
		}
		if err := try(level); err != nil {
			found.Lacking = append(found.Lacking, fmt.Sprintf("no %s: %v", level, err))
			continue
		}
		found.Level = level
		break
	}
	return found
}

// try confines a process at a level.
func try(level Level) error {
	p, err := Start(Spec{Path: "/", probe: true, Policy: Policy{Level: level, Network: NetworkNone}}, Stdio{})
	if err != nil {
		return err
	}
	<-p.Gone()
	if exit := p.Exit(); exit.Code != 0 {
		return fmt.Errorf("trying it ended with %v", exit)
	}
	return nil
}
