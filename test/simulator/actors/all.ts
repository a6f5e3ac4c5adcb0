import type { Kind } from '../kind.ts'
import { agents } from './agents.ts'
import { attackers } from './attackers.ts'
import { bank } from './bank.ts'
import { bridgers } from './bridgers.ts'
import { channelPayers } from './channel-payers.ts'
import { channelSellers } from './channel-sellers.ts'
import { delegates } from './delegates.ts'
import { keyedOwners } from './keyed-owners.ts'
import { meteredSellers } from './metered-sellers.ts'
import { faults } from './operator.ts'
import { owners } from './owners.ts'
import { payers } from './payers.ts'
import { processor } from './processor.ts'
import { refundingSellers } from './refunding-sellers.ts'
import { sellers } from './sellers.ts'
import { swappers } from './swappers.ts'

export const kinds: readonly Kind[] = [
  ...agents,
  ...delegates,
  ...owners,
  ...keyedOwners,
  ...payers,
  ...channelPayers,
  ...processor,
  ...sellers,
  ...meteredSellers,
  ...channelSellers,
  ...refundingSellers,
  ...swappers,
  ...bridgers,
  ...bank,
  ...attackers,
  ...faults,
]
