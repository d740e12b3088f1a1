// Light or dark, decided before the first paint: the reader's choice, else the system's.
import { apply, chosen } from "./theme_choice";

apply(chosen());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(chosen()));
