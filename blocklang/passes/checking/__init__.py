"""The parts of `insert_checks`: intervals of live lanes, exact arithmetic, reports of the first lane."""
