"""A variant at several commits: timed side by side, searched for the commit that changed it."""
