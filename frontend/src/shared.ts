// What several scripts use, in one piece: the build imports this into each of them, so that all of it is one chunk that
// a browser loads once, and not a chunk for every combination of scripts.
import "./api";
import "./browser_notes_choice";
import "./dom";
import "./htmx";
import "./phases";
import "./sockets";
import "./theme_choice";
import "./times";
import "./toast";
import "./unchanged";
import "./words";
