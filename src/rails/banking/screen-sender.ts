/** AML screening of the sender of a deposit. */
import { isAddress } from 'viem'
import { screenName } from '../../../policies/aml/screen-name.ts'
import type { Screening } from '../../../policies/aml/screening.ts'
import type { Sanctions } from '../../providers/sanctions/port.ts'
import type { AddressScreening } from '../../providers/screening/port.ts'

export interface SenderScreening {
  readonly sanctions: Sanctions
  readonly screening: AddressScreening
}

/**
 * Screens a sender: an address or a name. @param sender null: the bank did not name it, and nothing is screened.
 * @throws Failure `screening_unavailable`; the provider resends the event later.
 */
export async function screenSender(
  { sanctions, screening }: SenderScreening,
  sender: string | null,
): Promise<Screening> {
  if (sender === null) return { result: 'clear', lists: [] }
  if (isAddress(sender, { strict: false })) return screening.screen(`0x${sender.slice(2).toLowerCase()}`)
  const { result } = screenName(sender, (await sanctions.latest()).names)
  return { result, lists: ['sender_name'] }
}
