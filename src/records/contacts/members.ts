/** What an owner says of a contact. */
import { getAddress } from 'viem'
import { z } from 'zod'
import { findNameFault } from '../../../policies/contact-names.ts'
import { Failure } from '../../core/failures/failure.ts'
import { chainInput } from '../../core/money/chains.ts'
import type { Chains } from '../../providers/chain/chains.ts'
import { evmAddress } from '../../rails/wallets/transfers/transfer-members.ts'
import type { ContactAddress } from './store.ts'

const MAX_ADDRESSES = 10

const contactName = z
  .string()
  .trim()
  .min(1)
  .max(80)
  .overwrite((text) => text.normalize('NFC').replaceAll(/ +/g, ' '))
  .superRefine((text, context) => {
    const message = findNameFault(text)
    if (message !== null) context.addIssue({ code: 'custom', message })
  })

export const contactMembers = {
  name: contactName.describe(
    'Name, 1 to 80 visible characters. Letter case tells no two apart, and no two may look alike.',
  ),
  addresses: z
    .array(
      z.strictObject({
        chain: chainInput.nullish().describe('Chain of the address. Default: any.'),
        address: evmAddress.describe('EVM address.'),
      }),
    )
    .max(MAX_ADDRESSES)
    .optional()
    .describe('Where it is paid, one address for each chain and one for any other.'),
  recipientId: z
    .string()
    .max(64)
    .nullish()
    .describe('`rcp_…`: bank account that it is paid at, from GET /api/banking/recipients.'),
  email: z.email().max(254).nullish().describe('E-mail address, for the owner’s own use.'),
}

type GivenAddress = NonNullable<z.output<typeof contactMembers.addresses>>[number]

/** Addresses as they are kept, with the names of this deployment’s chains. @throws Failure `chain_not_supported`, `invalid_request`. */
export function normalizeAddresses(
  chains: Chains,
  given: readonly GivenAddress[],
): readonly ContactAddress[] {
  const kept = given.map(({ chain, address }) => ({
    chain: chain == null ? null : chains.of(chain).name,
    address: getAddress(address),
  }))
  if (new Set(kept.map(({ chain }) => chain)).size === kept.length) return kept
  const message = 'must have one address for each chain'
  throw new Failure('invalid_request', `addresses: ${message}`, { issues: [{ path: 'addresses', message }] })
}
