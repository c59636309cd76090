// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/garraia/garra/internal/advice"
)

// CodeVaultLocked is the code of an error that means: the vault can't be opened with
// that passphrase, or nobody has given one.
const CodeVaultLocked = "vault.locked"

// maxPassphraseBody bounds the request that opens the vault, in bytes.
const maxPassphraseBody = 128 << 10

// A Vault is what the routes about the vault steer. Errors of both are shown as they
// are.
type Vault interface {
	// Unlock opens the vault, with the identities of the configuration when the
	// passphrase is empty. It returns the servers that are restarted for that. Locked
	// tells an error of the passphrase from others.
	Unlock(ctx context.Context, passphrase []byte) (restarted []string, locked bool, err error)
	// Unavailable returns the secrets that servers refer to and can't have; open tells
	// whether the vault is.
	Unavailable() (secrets []UnavailableSecret, open bool)
	// Refresh reads the vault again, if it was written, and returns the servers that
	// are restarted for that.
	Refresh() (restarted []string, err error)
}

// An UnavailableSecret is one that a server refers to and can't have.
type UnavailableSecret struct {
	Server  string `json:"server"`
	Key     string `json:"key"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// A VaultInfo is what may be seen of the gateway's vault.
type VaultInfo struct {
	Open        bool                `json:"open"`
	Unavailable []UnavailableSecret `json:"unavailable"`
}

// showVault answers with what may be seen of the vault.
func (a *API) showVault(w http.ResponseWriter, _ *http.Request) error {
	secrets, open := a.Vault.Unavailable()
	writeJSON(w, http.StatusOK, VaultInfo{open, append([]UnavailableSecret{}, secrets...)})
	return nil
}

// unlockRequest is the body of a request to open the vault.
type unlockRequest struct {
	Passphrase string `json:"passphrase"`
}

// vaultResult is the answer to a request about the vault.
type vaultResult struct {
	Restarted []string `json:"restarted"`
}

// unlockVault opens the vault. The passphrase doesn't go over a network.
func (a *API) unlockVault(w http.ResponseWriter, r *http.Request) error {
	if callerOf(r).principal != localPrincipal {
		return errorf(http.StatusForbidden, "auth.socket", "run `garra vault unlock` on this machine",
			"the vault is opened over the gateway's socket only")
	}
	var body unlockRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPassphraseBody)).Decode(&body); err != nil {
		return errorf(http.StatusBadRequest, "http.body", `send {"passphrase": "…"}`, "the body can't be read")
	}
	restarted, locked, err := a.Vault.Unlock(r.Context(), []byte(body.Passphrase))
	switch {
	case locked:
		return errorf(http.StatusUnprocessableEntity, "vault.locked", "", "%v", err)
	case err != nil:
		return vaultError(err)
	}
	writeJSON(w, http.StatusOK, vaultResult{append([]string{}, restarted...)})
	return nil
}

// refreshVault reads the vault again.
func (a *API) refreshVault(w http.ResponseWriter, _ *http.Request) error {
	restarted, err := a.Vault.Refresh()
	if err != nil {
		return vaultError(err)
	}
	writeJSON(w, http.StatusOK, vaultResult{append([]string{}, restarted...)})
	return nil
}

// vaultError is a failure of the vault as an answer.
func vaultError(err error) error {
	fix, _ := advice.Of(err)
	return errorf(http.StatusUnprocessableEntity, "vault.refused", fix, "%v", err)
}
