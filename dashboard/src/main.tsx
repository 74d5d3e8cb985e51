import "./style.css";
import { render } from "preact";
import { look } from "./api/session.ts";
import { App } from "./shell/app.tsx";
import { listenToKeys } from "./shell/shortcuts.ts";

listenToKeys();
void look();
render(<App />, document.getElementById("page")!);
