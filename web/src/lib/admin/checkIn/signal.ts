/** Tells the result without a look at the phone: a high tone and one push, or a low tone and three. */
let context: AudioContext | undefined;

/** Browsers play tones only after the user has touched the page. */
export function allowSound(): void {
  context ??= new AudioContext();
  void context.resume();
}

export function signal(isGood: boolean): void {
  navigator.vibrate?.(isGood ? 80 : [120, 80, 120, 80, 120]);
  if (context?.state !== 'running') return;
  const tones = isGood ? [880, 1320] : [220, 165];
  tones.forEach((frequency, place) => tone(frequency, place * 0.12, isGood ? 0.12 : 0.22));
}

function tone(frequency: number, after: number, seconds: number): void {
  if (!context) return;
  const [oscillator, volume] = [context.createOscillator(), context.createGain()];
  const start = context.currentTime + after;
  oscillator.frequency.value = frequency;
  oscillator.type = frequency > 400 ? 'sine' : 'square';
  volume.gain.setValueAtTime(0.25, start);
  volume.gain.exponentialRampToValueAtTime(0.001, start + seconds);
  oscillator.connect(volume).connect(context.destination);
  oscillator.start(start);
  oscillator.stop(start + seconds);
}
