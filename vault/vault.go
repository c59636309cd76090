// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/filelock"
)

// Options say where a vault is and how it is treated.
type Options struct {
	// Path is the file. A symbolic link is followed.
	Path string
	// Record is a file outside the vault's folder that remembers the highest
	// generation seen of each vault; "" means that older files are accepted.
	Record string
	// AcceptRollback lets [Open] take a file that is older than one seen before,
	// which from then on is the newest one.
	AcceptRollback bool
	// WorkFactor is the logarithm of scrypt's N when a file is written for a
	// passphrase: at most 20, 0 for age's own 18. Files with more than 20 are
	// not opened.
	WorkFactor int
}

// work returns the work factor to write with.
func (o Options) work() (int, error) {
	switch {
	case o.WorkFactor == 0:
		return defaultWork, nil
	case o.WorkFactor < 1 || o.WorkFactor > maxWork:
		return 0, &Error{
			Kind:    ErrWorkFactor,
			Message: fmt.Sprintf("a work factor of %d is not between 1 and %d", o.WorkFactor, maxWork),
		}
	}
	return o.WorkFactor, nil
}

// A Vault is an open vault file. What it shows is what it read or wrote last. It
// is safe for concurrent use, and any number of processes may have the same file
// open.
type Vault struct {
	path   string // without symbolic links
	record record
	work   int
	now    func() time.Time

	busy sync.Mutex // held while the file is read or written; taken before mu

	mu   sync.Mutex // guards all below
	key  Key
	last *snapshot // nil once closed
}

// A snapshot is a file as it was at one time.
type snapshot struct {
	*contents
	digest [sha256.Size]byte
}

// Exists tells whether there is a file at path.
func Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Create makes an empty vault, and its folder where there is none. It returns
// [ErrExists] when there is a file already, and [ErrExposed] when others could
// replace it.
func Create(o Options, k Key) (*Vault, error) {
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the vault's folder: %w", err)
	}
	v, err := newVault(o, k)
	if err != nil {
		return nil, err
	}
	unlock, err := v.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	isNew := func(_ []byte, there bool) error {
		if !there {
			return nil
		}
		return &Error{
			Kind: ErrExists, Path: o.Path, Message: "there is a vault already",
			Fix: "use it, or move it away",
		}
	}
	there, err := Exists(v.path)
	if err == nil {
		err = isNew(nil, there) // before a key is derived
	}
	if err == nil {
		err = v.write(&contents{id: rand.Text(), generation: 1, entries: map[string]*item{}}, k, isNew)
	}
	if err != nil {
		return nil, err
	}
	inherit(v.path)
	return v, nil
}

// Open opens a vault. It derives a passphrase's key once. It returns
// [ErrNoVault], [ErrExposed], [ErrWorkFactor], [ErrWrongPassphrase],
// [ErrDamaged], [ErrVersion] or [ErrRollback].
func Open(o Options, k Key) (*Vault, error) {
	v, err := newVault(o, k)
	if err != nil {
		return nil, err
	}
	s, err := v.load(k)
	if errors.Is(err, ErrRollback) && o.AcceptRollback {
		err = v.record.note(v.path, s.contents, true)
	}
	if err != nil {
		return nil, err
	}
	v.last = s
	return v, nil
}

func newVault(o Options, k Key) (*Vault, error) {
	work, err := o.work()
	if err != nil {
		return nil, err
	}
	path, err := resolve(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noVault(o.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the vault: %w", err)
	}
	return &Vault{path: path, record: record(o.Record), work: work, key: k, now: time.Now}, nil
}

// noVault is the error when there is no file.
func noVault(path string) error {
	return &Error{Kind: ErrNoVault, Path: path, Message: "there is no vault", Fix: "make one with: garra vault init"}
}

// ID returns the random name that a vault keeps for life: "" for one that was
// made by hand without any, until garra writes it, and for a closed one.
func (v *Vault) ID() string { return v.shown().id }

// Generation returns how often the vault was written; 0 when it is closed.
func (v *Vault) Generation() uint64 { return v.shown().generation }

// Entries returns what the vault holds, sorted by name.
func (v *Vault) Entries() []Entry { return v.shown().all() }

// Entry returns what is said of one value; ok is false when there is none.
func (v *Vault) Entry(name string) (entry Entry, ok bool) {
	i, ok := v.shown().entries[name]
	if !ok {
		return Entry{}, false
	}
	return i.entry(name), true
}

// Value returns one value. It returns [ErrNoKey] or [ErrClosed].
func (v *Vault) Value(name string) (*Secret, error) {
	_, s, err := v.current()
	if err != nil {
		return nil, err
	}
	i, err := find(s.entries, name)
	if err != nil {
		return nil, err
	}
	return i.value, nil
}

// Close forgets the values and the key. Values that were handed out stay usable.
func (v *Vault) Close() {
	v.busy.Lock()
	defer v.busy.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key, v.last = Key{}, nil
}

// Reload reads the file again if it is another one than v has, and tells whether
// it was. It returns the errors of [Open] and [ErrClosed]; v then stays as it was.
func (v *Vault) Reload() (changed bool, err error) {
	v.busy.Lock()
	defer v.busy.Unlock()
	k, s, err := v.current()
	if err != nil {
		return false, err
	}
	data, err := v.read()
	if err != nil || sha256.Sum256(data) == s.digest {
		return false, err
	}
	if s, err = v.load(k); err != nil {
		return false, err
	}
	v.show(s, k)
	return true, nil
}

// Update changes the vault while no other process does: it reads the file again
// if another one has written it, lets change work on what is there, and writes
// the result as the next generation. A file is never half written: after a crash
// it is the old one or the new one.
//
// Nothing is written when change returns an error, which Update returns as it is,
// nor when all is as it was. Other writers wait meanwhile, so change must not ask
// a person, nor call Update, Rekey, Reload or Close of the same vault.
//
// Update returns the errors of [Open] and [ErrClosed]. An error of the record of
// generations comes after the vault was written.
func (v *Vault) Update(change func(*Edit) error) error {
	return v.exclusively(func(k Key, s *snapshot) error {
		e := newEdit(s.contents, v.now().UTC().Truncate(time.Second))
		if err := change(e); err != nil {
			return err
		}
		if !e.changed() {
			v.show(s, k)
			return nil
		}
		return v.next(e.result(), s, k)
	})
}

// Rekey writes the same contents for another key, with which v works from then
// on. It returns the errors of [Vault.Update].
func (v *Vault) Rekey(k Key) error {
	return v.exclusively(func(_ Key, s *snapshot) error {
		c := *s.contents
		return v.next(&c, s, k)
	})
}

// exclusively calls f with the key and the newest contents, while no other
// process changes the file.
func (v *Vault) exclusively(f func(Key, *snapshot) error) error {
	v.busy.Lock()
	defer v.busy.Unlock()
	k, s, err := v.current()
	if err != nil {
		return err
	}
	unlock, err := v.lock()
	if err != nil {
		return err
	}
	defer unlock()
	data, err := v.read()
	if err != nil {
		return err
	}
	if sha256.Sum256(data) != s.digest {
		if s, err = v.parse(data, k); err != nil {
			return err
		}
		if err := v.record.note(v.path, s.contents, false); err != nil {
			return err
		}
	}
	return f(k, s)
}

// next writes contents that follow on a snapshot.
func (v *Vault) next(c *contents, after *snapshot, k Key) error {
	c.generation++
	if c.id == "" {
		c.id = rand.Text()
	}
	return v.write(c, k, func(current []byte, _ bool) error {
		if sha256.Sum256(current) != after.digest {
			return fmt.Errorf("writing the vault: %q was changed meanwhile by a program that doesn't lock it", v.path)
		}
		return nil
	})
}

// write writes contents if check, which sees the file before, has nothing against
// it, and shows them. The caller holds the lock.
func (v *Vault) write(c *contents, k Key, check func(current []byte, exists bool) error) error {
	text, err := c.encode()
	if err != nil {
		return fmt.Errorf("writing the vault: %w", err)
	}
	defer clear(text)
	file, err := encrypt(text, k, v.work)
	if err != nil {
		return fmt.Errorf("encrypting the vault: %w", err)
	}
	if len(file) > maxSize {
		return fmt.Errorf("writing the vault: %w", errTooLarge)
	}
	if err := atomicfile.Sweep(v.path); err != nil {
		return fmt.Errorf("writing the vault: %w", err)
	}
	if err := atomicfile.Replace(v.path, file, check); err != nil {
		return fmt.Errorf("writing the vault: %w", err)
	}
	v.show(&snapshot{c, sha256.Sum256(file)}, k)
	return v.record.note(v.path, c, false)
}

// load reads the file and compares it with the record. A file that seems to be an
// old one is read again while nobody writes: it may have been read just before a
// newer one took its place. With [ErrRollback] it returns the contents too.
func (v *Vault) load(k Key) (*snapshot, error) {
	s, err := v.loadOnce(k)
	if !errors.Is(err, ErrRollback) {
		return s, err
	}
	unlock, lerr := v.lock()
	if lerr != nil {
		return s, err // a folder that garra can't write to; nor does it race then
	}
	defer unlock()
	data, rerr := v.read()
	if rerr != nil || sha256.Sum256(data) == s.digest {
		return s, errors.Join(err, rerr)
	}
	return v.loadOnce(k)
}

func (v *Vault) loadOnce(k Key) (*snapshot, error) {
	data, err := v.read()
	if err != nil {
		return nil, err
	}
	s, err := v.parse(data, k)
	if err != nil {
		return nil, err
	}
	return s, v.record.note(v.path, s.contents, false)
}

// read returns the bytes of the file.
func (v *Vault) read() ([]byte, error) {
	data, err := readGuarded(v.path, othersAny)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noVault(v.path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the vault: %w", err)
	}
	return data, nil
}

// parse opens the bytes of a file.
func (v *Vault) parse(data []byte, k Key) (*snapshot, error) {
	text, err := decrypt(v.path, data, k)
	if err != nil {
		return nil, fmt.Errorf("opening the vault: %w", err)
	}
	defer clear(text)
	c, err := decode(v.path, text)
	if err != nil {
		return nil, fmt.Errorf("opening the vault: %w", err)
	}
	return &snapshot{c, sha256.Sum256(data)}, nil
}

// lock waits until no other process changes the vault. The lock's file stands
// beside the vault, since the vault itself is replaced.
func (v *Vault) lock() (unlock func(), err error) {
	unlock, err = filelock.Lock(v.path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("locking the vault: %w", err)
	}
	inherit(v.path + ".lock")
	return unlock, nil
}

// current returns the key and what v shows, or [ErrClosed].
func (v *Vault) current() (Key, *snapshot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		return Key{}, nil, ErrClosed
	}
	return v.key, v.last, nil
}

// shown returns what v shows, which is nothing when it is closed.
func (v *Vault) shown() *contents {
	_, s, err := v.current()
	if err != nil {
		return &contents{}
	}
	return s.contents
}

// show lets v show a snapshot.
func (v *Vault) show(s *snapshot, k Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key, v.last = k, s
}
