import { newId } from '../../../src/core/base/ids.ts'
import { insertRecipient } from '../../../src/rails/banking/recipients.ts'
import { noon } from '../../kernel/scene.ts'

/** Saves a bank account in dollars. @returns its id. */
export async function insertTestRecipient(
  keeping: Parameters<typeof insertRecipient>[0],
  accountId: string,
): Promise<string> {
  const id = newId('rcp', noon)
  await insertRecipient(keeping, {
    id,
    accountId,
    currency: 'USD',
    country: 'US',
    details: {
      name: 'Grace Hopper',
      isCompany: false,
      account: { scheme: 'aba', routingNumber: '021000021', accountNumber: '123456789', type: 'checking' },
      address: null,
    },
    at: noon,
  })
  return id
}
