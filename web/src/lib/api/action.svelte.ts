/** One thing that a button does: it runs once at a time and keeps its refusal for the page. */
import { ApiFailure } from './failure';

export class Action {
  isBusy = $state(false);
  failure = $state.raw<ApiFailure | undefined>();

  /** True if it succeeded. A second call while it runs does nothing. */
  async run(work: () => Promise<void>): Promise<boolean> {
    if (this.isBusy) return false;
    this.isBusy = true;
    this.failure = undefined;
    try {
      await work();
      return true;
    } catch (error) {
      this.failure = ApiFailure.from(error);
      return false;
    } finally {
      this.isBusy = false;
    }
  }
}
