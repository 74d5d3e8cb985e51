import { Component, type RenderableProps } from "preact";

/** A screen that breaks does not take the others along. */
export class Failsafe extends Component<RenderableProps<unknown>, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div class="note bad" role="alert">
        <p>
          <strong>This screen broke.</strong> That is a mistake of the page, not of the cluster.
        </p>
        <pre class="code">{error instanceof Error ? (error.stack ?? error.message) : String(error)}</pre>
        <button type="button" onClick={() => this.setState({ error: null })}>
          Show it again
        </button>
      </div>
    );
  }
}
