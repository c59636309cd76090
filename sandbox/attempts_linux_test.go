// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNotHere: an attempt can't be made.
var errNotHere = errors.New("not here")

// tryAlone makes an attempt on a thread that nothing else will use.
func tryAlone(a attempt, w *world) error {
	runtime.LockOSThread()
	return a.try(w)
}

// attempts are the ways out.
func attempts() []attempt {
	return append(append(append(fileAttempts(), networkAttempts()...), processAttempts()...), kernelAttempts()...)
}

func readSecret(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && len(text) == 0 {
		return errNoEscape
	}
	return err
}

// overwrite opens a file to write, and leaves it as it is.
func overwrite(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func fileAttempts() []attempt {
	return []attempt{
		{"read a key", "files.read", func(w *world) error { return readSecret(w.Secret) }},
		{"read the vault", "files.read", func(w *world) error { return readSecret(w.Outside + "/vault.age") }},
		{"read the tokens", "files.read", func(w *world) error { return readSecret(w.Outside + "/tokens.json") }},
		{"read by a way around", "files.read", func(w *world) error {
			return readSecret(w.Inside + "/../outside/id_ed25519")
		}},
		{"read by its root", "files.read", func(w *world) error { return readSecret("/proc/self/root" + w.Secret) }},
		{"read by the parent's root", "files.read", func(w *world) error {
			return readSecret(fmt.Sprintf("/proc/%d/root%s", os.Getppid(), w.Secret))
		}},
		{"read by a sibling's root", "files.read", func(w *world) error {
			return readSecret(fmt.Sprintf("/proc/%d/root%s", w.Sibling, w.Secret))
		}},
		{"read by another program", "files.read", func(w *world) error {
			return exec.Command("/bin/cat", w.Secret).Run()
		}},
		{"list a folder", "files.read", func(w *world) error { _, err := os.ReadDir(w.Outside); return err }},
		{"list the root's home", "files.read", func(*world) error { _, err := os.ReadDir("/root"); return err }},
		{"run a program", "files.read", func(w *world) error { return exec.Command(w.Outside + "/program").Run() }},
		{"read passwords", "files.read", func(*world) error { return readSecret("/etc/shadow") }},
		{"read a disk", "files.read", func(*world) error { return readDevice() }},
		{"make a file", "files.write", func(w *world) error { return os.WriteFile(w.Outside+"/new", nil, 0o600) }},
		{"overwrite a file", "files.write", func(w *world) error { return overwrite(w.Secret, 0) }},
		{"append to a shell's settings", "files.write", func(w *world) error {
			return overwrite(w.Outside+"/.bashrc", os.O_APPEND)
		}},
		{"truncate a file", "files.write", func(w *world) error { return os.Truncate(w.Outside+"/tokens.json", 6) }},
		{"make a folder", "files.write", func(w *world) error { return os.Mkdir(w.Outside+"/folder", 0o700) }},
		{"make a pipe", "files.write", func(w *world) error { return unix.Mkfifo(w.Outside+"/pipe", 0o600) }},
		{"make a link outside", "files.write", func(w *world) error { return os.Symlink("/etc", w.Outside+"/link") }},
		{"remove a file", "files.write", func(w *world) error { return os.Remove(w.Outside + "/vault.age") }},
		{"remove a folder", "files.write", func(w *world) error { return os.Remove(makeOutside(w, "empty")) }},
		{"rename out", "files.write", func(w *world) error {
			return os.Rename(write(w, "mine"), w.Outside+"/renamed")
		}},
		{"write to the system's programs", "files.write", func(*world) error {
			path := "/usr/local/bin/garra-escape-test"
			defer os.Remove(path)
			return os.WriteFile(path, nil, 0o700)
		}},
		{"see a file", "files.see", func(w *world) error { _, err := os.Lstat(w.Secret); return err }},
		{"ask for access", "files.see", func(w *world) error { return unix.Access(w.Secret, unix.F_OK) }},
		{"change a mode", "files.attributes", func(w *world) error { return os.Chmod(w.Outside+"/program", 0o777) }},
		{"change times", "files.attributes", func(w *world) error {
			return os.Chtimes(w.Outside+"/program", time.Time{}, time.Now())
		}},
		{"read by a link", "files.ways", func(w *world) error {
			os.Symlink(w.Secret, w.Inside+"/link")
			return readSecret(w.Inside + "/link")
		}},
		{"write by a link to a folder", "files.ways", func(w *world) error {
			os.Symlink(w.Outside, w.Inside+"/folder")
			return os.WriteFile(w.Inside+"/folder/new", nil, 0o600)
		}},
		{"link a file in", "files.ways", func(w *world) error { return os.Link(w.Secret, w.Inside+"/hard") }},
		{"rename in", "files.ways", func(w *world) error {
			return os.Rename(w.Outside+"/tokens.json", w.Inside+"/tokens")
		}},
		{"exchange folders in a race", "files.ways", raceOut},
		{"change the root", "files.ways", func(*world) error {
			cmd := exec.Command("/bin/true") // the root is that of all threads of a process
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: "/"}
			return cmd.Run()
		}},
		{"mount a folder", "files.ways", func(w *world) error {
			defer unix.Unmount(w.Inside, unix.MNT_DETACH)
			return unix.Mount(w.Inside, w.Inside, "", unix.MS_BIND, "")
		}},
		{"clone a mount", "files.ways", func(*world) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE)
			unix.Close(fd)
			return err
		}},
		{"take a file's handle", "files.ways", func(w *world) error {
			_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Inside, 0)
			return err
		}},
		{"open a file's handle", "files.ways", func(*world) error {
			_, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, make([]byte, 8)), 0)
			return reached(err)
		}},
		{"open the host's descriptors", "descriptors", func(w *world) error {
			return leaked(w, "/proc/self/fd")
		}},
		{"open the gateway's descriptors", "descriptors", func(w *world) error {
			return leaked(w, fmt.Sprintf("/proc/%d/fd", w.Host))
		}},
	}
}

// reached takes an error that says that the kernel did look at the arguments for a
// success: a filter would not have let it.
func reached(err error) error {
	for _, refused := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS} {
		if errors.Is(err, refused) {
			return err
		}
	}
	return nil
}

func write(w *world, name string) string {
	path := filepath.Join(w.Inside, name)
	os.WriteFile(path, nil, 0o600)
	return path
}

// makeOutside makes a folder outside where nothing hinders it, and names one that is there
// anyway where something does.
func makeOutside(w *world, name string) string {
	path := filepath.Join(w.Outside, name)
	if os.Mkdir(path, 0o700) != nil {
		return w.Outside + "/vault.age"
	}
	return path
}

func readDevice() error {
	disks, _ := filepath.Glob("/sys/class/block/*")
	for _, disk := range disks {
		f, err := os.Open("/dev/" + filepath.Base(disk))
		if err == nil {
			return f.Close()
		}
	}
	f, err := os.Open("/dev/vda")
	if errors.Is(err, os.ErrNotExist) && len(disks) == 0 {
		return errNotHere
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// raceOut exchanges a folder with a link to the outside, again and again, while a file is
// written in it, as a server with a check before its writes could be made to do.
func raceOut(w *world) error {
	folder, link := w.Inside+"/race", w.Inside+"/race-link"
	os.Mkdir(folder, 0o700)
	os.Symlink(w.Outside, link)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop is closed, which raceOut waits for
		defer close(stopped)
		for !closed(stop) {
			unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 10_000 {
		if f, err := os.OpenFile(folder+"/raced", os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
			f.Close()
			if err == nil && strings.HasPrefix(name, w.Outside) {
				return nil
			}
		}
	}
	return errNoEscape
}

// leaked looks for a file of the host among descriptors.
func leaked(w *world, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name, _ := os.Readlink(filepath.Join(folder, e.Name())); name == w.Leaked {
			return nil
		}
	}
	return errNoEscape
}

func dial(network, address string) error {
	if address == "" {
		return errNotHere
	}
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

func networkAttempts() []attempt {
	socket := func(family, kind, protocol int) func(*world) error {
		return func(*world) error {
			fd, err := unix.Socket(family, kind, protocol)
			if err == nil {
				unix.Close(fd)
			}
			// A family that the kernel doesn't have can't be told from one that is refused.
			if errors.Is(err, unix.EAFNOSUPPORT) {
				return errNotHere
			}
			return err
		}
	}
	return []attempt{
		{"connect to the host's loopback", "network.none", func(w *world) error { return dial("tcp", w.TCP) }},
		{"connect to it by IPv6", "network.none", func(w *world) error { return dial("tcp", w.TCP6) }},
		{"connect to it by an IPv4 address in IPv6", "network.none", func(w *world) error {
			_, port, _ := net.SplitHostPort(w.TCP)
			return dialMapped(port)
		}},
		{"connect to a name that is the host", "network.none", func(w *world) error {
			_, port, _ := net.SplitHostPort(w.TCP)
			return dial("tcp", "localhost:"+port)
		}},
		{"speak UDP to the host", "network.none", speakUDP},
		{"be on another interface", "network.none", hasInterface},
		{"connect to docker's socket", "sockets.unix", func(w *world) error { return dial("unix", w.Unix) }},
		{"connect to it by a link", "sockets.unix", func(w *world) error { return dial("unix", w.UnixLink) }},
		{"connect to an abstract socket", "sockets.unix", func(w *world) error { return dial("unix", w.Name) }},
		{"make a raw socket", "sockets.families", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{"make a raw IPv6 socket", "sockets.families", socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
		{"make a packet socket", "sockets.families", socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{"make a netlink socket", "sockets.families", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)},
		{"make a vsock socket", "sockets.families", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{"make an MPTCP socket", "sockets.families", socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{"make a socket of the kernel's ciphers", "sockets.families", socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
		{"make a Bluetooth socket", "sockets.families", socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 0)},
	}
}

func dialMapped(port string) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	fmt.Sscan(port, &to.Port)
	return unix.Connect(fd, to)
}

func speakUDP(w *world) error {
	conn, err := net.Dial("udp", w.UDP)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// hasInterface looks for a way to a network, without using it.
func hasInterface(*world) error {
	interfaces, err := os.ReadDir("/sys/class/net")
	if err == nil && len(interfaces) < 2 {
		return errNotHere // the machine has none
	}
	conn, err := net.Dial("udp", "169.254.169.254:53")
	if err != nil {
		return err
	}
	return conn.Close()
}

func processAttempts() []attempt {
	return []attempt{
		{"see a sibling", "processes.see", func(w *world) error {
			return readSecret(fmt.Sprintf("/proc/%d/cmdline", w.Sibling))
		}},
		{"see the gateway", "processes.see", func(w *world) error {
			return readSecret(fmt.Sprintf("/proc/%d/status", w.Host))
		}},
		{"read a sibling's environment", "processes.environ", func(w *world) error {
			return readSecret(fmt.Sprintf("/proc/%d/environ", w.Sibling))
		}},
		{"read the launcher's environment", "processes.environ", func(*world) error {
			return readSecret(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		}},
		{"trace a sibling", "processes.memory", func(w *world) error { return unix.PtraceSeize(w.Sibling) }},
		{"trace the launcher", "processes.memory", func(*world) error { return unix.PtraceSeize(os.Getppid()) }},
		{"read a sibling's memory", "processes.memory", func(w *world) error { return readMemory(w.Sibling) }},
		{"open a sibling's memory", "processes.memory", func(w *world) error {
			return overwrite(fmt.Sprintf("/proc/%d/mem", w.Sibling), 0)
		}},
		{"take a sibling's descriptor", "processes.memory", func(w *world) error {
			pidfd, err := unix.PidfdOpen(w.Sibling, 0)
			if err != nil {
				return err
			}
			defer unix.Close(pidfd)
			fd, err := unix.PidfdGetfd(pidfd, 0, 0)
			unix.Close(fd)
			return err
		}},
		{"signal a sibling", "processes.signal", func(w *world) error { return unix.Kill(w.Sibling, unix.SIGCONT) }},
		{"signal the gateway", "processes.signal", func(w *world) error { return unix.Kill(w.Host, 0) }},
		{"signal a sibling by a descriptor", "processes.signal", func(w *world) error {
			pidfd, err := unix.PidfdOpen(w.Sibling, 0)
			if err != nil {
				return err
			}
			defer unix.Close(pidfd)
			return unix.PidfdSendSignal(pidfd, unix.SIGCONT, nil, 0)
		}},
		{"signal a sibling's thread", "processes.signal", func(w *world) error {
			return unix.Tgkill(w.Sibling, w.Sibling, unix.SIGCONT)
		}},
		{"map shared memory", "processes.ipc", func(w *world) error {
			memory, err := unix.SysvShmAttach(w.Shared, 0, 0)
			if err == nil {
				unix.SysvShmDetach(memory)
			}
			return err
		}},
		{"look at a message queue", "processes.ipc", func(w *world) error {
			var info [256]byte
			_, _, errno := unix.Syscall(unix.SYS_MSGCTL, uintptr(w.Queue), unix.IPC_STAT,
				uintptr(unsafe.Pointer(&info)))
			return orNil(errno)
		}},
		{"become another user", "privileges.have", func(*world) error {
			return orNil(rawCall(unix.SYS_SETRESUID, 1, 1, 1))
		}},
		{"give a file away", "privileges.have", func(w *world) error { return os.Chown(write(w, "given"), 1, 1) }},
		{"raise a priority", "privileges.have", func(*world) error {
			return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -5)
		}},
		{"make a device", "privileges.have", func(w *world) error {
			return unix.Mknod(w.Inside+"/device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}},
		{"become root", "privileges.gain", becomeRoot},
		{"make a user namespace", "privileges.namespaces", inNamespaces(unix.CLONE_NEWUSER)},
		{
			"make other namespaces", "privileges.namespaces",
			inNamespaces(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET),
		},
		{"leave its mounts", "privileges.namespaces", func(*world) error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"enter another namespace", "privileges.namespaces", func(*world) error {
			f, err := os.Open("/proc/self/ns/uts")
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Setns(int(f.Fd()), unix.CLONE_NEWUTS)
		}},
	}
}

func orNil(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func rawCall(number, a, b, c uintptr) syscall.Errno {
	_, _, errno := unix.RawSyscall(number, a, b, c)
	return errno
}

// readMemory reads a byte of another process, or would if it knew where.
func readMemory(pid int) error {
	buffer := make([]byte, 1)
	local := []unix.Iovec{{Base: &buffer[0], Len: 1}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x1000, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// becomeRoot runs a setuid program, which says whether it is root's.
func becomeRoot(w *world) error {
	if os.Geteuid() == 0 {
		return errNotHere
	}
	cmd := exec.Command(w.Setuid)
	cmd.Args = []string{roleName, "euid"}
	out, err := cmd.Output()
	if err == nil && strings.TrimSpace(string(out)) != "0" {
		return errNoEscape
	}
	return err
}

func inNamespaces(flags uintptr) func(*world) error {
	return func(*world) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		return cmd.Run()
	}
}

func kernelAttempts() []attempt {
	call := func(number uintptr) func(*world) error {
		return func(*world) error { return reached(orNil(rawCall(number, ^uintptr(0), ^uintptr(0), ^uintptr(0)))) }
	}
	setting := func(path string) func(*world) error {
		return func(*world) error {
			err := overwrite(path, 0)
			if errors.Is(err, os.ErrNotExist) {
				return errNotHere
			}
			return err
		}
	}
	return []attempt{
		{"load a program into the kernel", "kernel.interfaces", call(unix.SYS_BPF)},
		{"measure other processes", "kernel.interfaces", call(unix.SYS_PERF_EVENT_OPEN)},
		{"handle page faults", "kernel.interfaces", func(*world) error {
			fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
			if errno == 0 {
				unix.Close(int(fd))
			}
			return reached(orNil(errno))
		}},
		{"use io_uring", "kernel.interfaces", call(unix.SYS_IO_URING_SETUP)},
		{"enter an io_uring", "kernel.interfaces", call(unix.SYS_IO_URING_ENTER)},
		{"swap to a file", "kernel.interfaces", call(unix.SYS_SWAPON)},
		{"mount a file system", "kernel.interfaces", call(unix.SYS_FSOPEN)},
		{"unmount one", "kernel.interfaces", func(*world) error { return reached(unix.Unmount("/nowhere", 0)) }},
		{"watch the file system", "kernel.interfaces", call(unix.SYS_FANOTIFY_INIT)},
		{"add a key", "kernel.keys", func(*world) error {
			_, err := unix.AddKey("user", "garra-escape", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		{"read its keyring", "kernel.keys", func(*world) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
			return err
		}},
		{"ask for a key", "kernel.keys", call(unix.SYS_REQUEST_KEY)},
		{"set where core files go", "kernel.settings", setting("/proc/sys/kernel/core_pattern")},
		{"restart the machine", "kernel.settings", setting("/proc/sysrq-trigger")},
		{"set the machine's memory", "kernel.settings", setting("/proc/sys/vm/overcommit_memory")},
		{"set the kernel's memory", "kernel.settings", setting("/sys/kernel/mm/ksm/run")},
		{"type into a terminal", "terminal", func(*world) error {
			key := byte('x')
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&key)))
			return reached(orNil(errno))
		}},
		{"type by its console", "terminal", func(*world) error {
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCLINUX, 0)
			return reached(orNil(errno))
		}},
	}
}
