import "../style.css";
import "./reference.css";
import { render } from "preact";
import { Reference } from "./reference.tsx";

render(<Reference />, document.getElementById("page")!);
