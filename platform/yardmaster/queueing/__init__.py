"""Who is next, and what fits: amounts, quotas, machines and the decision over a whole queue."""
