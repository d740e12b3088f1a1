// The page of a terminal in a task.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { TerminalLine } from "../terminal/line";
import { keepToThePolicy } from "../terminal/styles";

const THEME = { background: "#11161d", foreground: "#dbe2ea", cursor: "#dbe2ea", selectionBackground: "#3b5170" };
const READER = "terminal-screen-reader";

function start(card: HTMLElement): void {
  const part = <T extends HTMLElement>(name: string) => card.querySelector<T>(`[data-${name}]`)!;
  const [box, end, again, reader] = [part("box"), part("end"), part<HTMLButtonElement>("again"), part("reader")];
  const task = card.dataset.task!;
  const terminal = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    fontSize: 13,
    scrollback: 5_000,
    theme: THEME,
    screenReaderMode: localStorage.getItem(READER) === "yes",
    // What a program prints as a link is its own word: it leads nowhere from here.
    linkHandler: { activate: () => undefined },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(box);
  fit.fit();
  new ResizeObserver(() => fit.fit()).observe(box);
  if (terminal.textarea) terminal.textarea.setAttribute("aria-label", `Terminal in ${task}`);

  let line: TerminalLine;
  let counting = 0;
  const say = (words: string) => {
    clearInterval(counting);
    part("state").textContent = words;
    part("waited").textContent = "";
  };
  // Where the task has to ask first, it takes some seconds: they are counted, so that the page is seen to be at it.
  const wait = () => {
    say(`Connecting to ${task} …`);
    const begun = Date.now();
    counting = window.setInterval(() => {
      const seconds = Math.round((Date.now() - begun) / 1000);
      part("waited").textContent = `${seconds} s. ${seconds > 10 ? "The task may be busy or ending." : "This usually takes up to 5 seconds."}`;
    }, 1000);
  };
  const open = () => {
    again.hidden = true;
    end.hidden = false;
    box.hidden = false;
    let wasOpen = false;
    terminal.reset();
    wait();
    line = new TerminalLine(card.dataset.terminal!, {
      waiting: () => undefined,
      open: () => {
        wasOpen = true;
        say("Connected");
        line.resize(terminal.rows, terminal.cols);
        terminal.focus();
      },
      printed: (bytes, read) => terminal.write(bytes, read),
      over: (why) => {
        say(why);
        box.hidden = !wasOpen; // where nothing came, there is nothing to read
        end.hidden = true;
        again.hidden = false;
        if (box.contains(document.activeElement) || document.activeElement === document.body) again.focus();
      },
    });
  };
  terminal.onData((text) => line.send(new TextEncoder().encode(text)));
  terminal.onBinary((text) => line.send(Uint8Array.from(text, (one) => one.charCodeAt(0))));
  terminal.onResize(({ rows, cols }) => line?.resize(rows, cols));
  terminal.attachCustomKeyEventHandler((event) => {
    const leaves = event.ctrlKey && ((event.shiftKey && event.key === "Escape") || event.key === "F6");
    if (leaves && event.type === "keydown") (end.hidden ? again : end).focus();
    return !leaves;
  });
  end.addEventListener("click", () => line.end());
  again.addEventListener("click", open);
  const showReader = () => reader.setAttribute("aria-pressed", String(Boolean(terminal.options.screenReaderMode)));
  reader.addEventListener("click", () => {
    terminal.options.screenReaderMode = !terminal.options.screenReaderMode;
    localStorage.setItem(READER, terminal.options.screenReaderMode ? "yes" : "no");
    showReader();
  });
  showReader();
  open();
}

keepToThePolicy();
for (const card of document.querySelectorAll<HTMLElement>("[data-terminal]")) start(card);
