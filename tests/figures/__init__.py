"""The figures of the project's structure, for a comparison of before and after: `make figures`."""
