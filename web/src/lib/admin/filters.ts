/** A filter of a list. Its value is the search parameter `name` of the address. */
interface Named {
  readonly name: string;
  readonly label: string;
}

export type Filter =
  | (Named & { readonly kind: 'search'; readonly placeholder?: string })
  | (Named & { readonly kind: 'date' })
  | (Named & {
      readonly kind: 'choice';
      /** The first one is the default; its value is empty. */
      readonly options: readonly { readonly value: string; readonly label: string }[];
    });

/** The number of the page in the address. */
export function pageNumber(parameters: URLSearchParams): number {
  const number = Number(parameters.get('page') ?? '1');
  return Number.isInteger(number) && number > 0 ? number : 1;
}
