"""Where bytes lie: objects by key, uploads in parts, signed addresses. `base` is the contract, `local` a folder."""
