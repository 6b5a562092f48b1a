/** One form's sending: busy while it is under way, and the failure if it was refused. */
import { asFailure, type Failure } from '../api/problem';

export class Submit {
  isBusy = $state(false);
  failure = $state.raw<Failure | undefined>();

  /** Runs what sends the form; true where it was accepted. */
  async run(send: () => Promise<void>): Promise<boolean> {
    this.isBusy = true;
    this.failure = undefined;
    try {
      await send();
      return true;
    } catch (thrown) {
      this.failure = asFailure(thrown);
      return false;
    } finally {
      this.isBusy = false;
    }
  }

  /** For `onsubmit`: keeps the browser from leaving the page. */
  on(send: () => Promise<void>): (event: SubmitEvent) => void {
    return (event) => {
      event.preventDefault();
      void this.run(send);
    };
  }
}
