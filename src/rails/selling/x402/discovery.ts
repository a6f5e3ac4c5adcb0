/** Discovery document at `/.well-known/x402` for crawlers. @see https://docs.x402.org/extensions/bazaar */
import { buildExtensions } from './extensions.ts'
import { requirementsV2, type Terms } from './terms.ts'

/** @param offered terms on each chain, the default first. @param example a valid query for the resource. */
export function buildDiscovery(
  offered: readonly [Terms, ...Terms[]],
  example: Readonly<Record<string, string>>,
) {
  const [{ resource, description, mimeType }] = offered
  const { bazaar } = buildExtensions(example)
  return {
    version: 1,
    x402Version: 2,
    resources: [resource],
    items: [
      {
        resource,
        type: 'http',
        method: 'GET',
        description,
        mimeType,
        accepts: offered.flatMap(requirementsV2),
        extensions: { bazaar },
      },
    ],
  }
}
