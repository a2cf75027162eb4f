/**
 * The secret of a link from a mail. It comes after `#`, which browsers do not send to servers. It is
 * taken out of the address at once, so that it is in no history and no copied address.
 */
export class LinkToken {
  /** False while a shell is prerendered and until the browser was asked. */
  isKnown = $state(false);
  value = $state<string | null>(null);

  take(): void {
    const found = location.hash.slice(1);
    if (found) {
      this.value = found;
      history.replaceState(history.state, '', location.pathname + location.search);
    }
    this.isKnown = true;
  }
}
