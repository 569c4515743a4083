"""A variant at several commits: timed side by side, or bisected for the commit that changed it."""
