"""The device descriptions that are shipped, one TOML file each; `blocklang.target.device` reads them."""
