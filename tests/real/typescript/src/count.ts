export interface Counted {
  word: string;
  n: number;
}

export function count(text: string): Counted[] {
  const all = new Map<string, number>();
  for (const word of text.split(/\s+/).filter(Boolean))
    all.set(word, (all.get(word) ?? 0) + 1);
  return [...all].map(([word, n]) => ({ word, n })).sort((a, b) => b.n - a.n);
}
