// The page of a job's log.
import { startViewers } from "../log/viewer";

startViewers();
